"""What is on disk, and resuming from it."""
