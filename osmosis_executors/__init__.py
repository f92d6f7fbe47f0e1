"""What runs an evaluation for somebody else: one interface, and child processes of this machine."""
