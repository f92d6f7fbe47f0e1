"""Commands about what is submitted to a platform."""
