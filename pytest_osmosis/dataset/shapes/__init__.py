"""What a file is, by the names and values of its columns."""
