"""What an operator sees of a platform: its health, its figures, and its log."""
