"""The pages of the documentation: what their blocks of code are, and that they run."""
