"""What keeps user code within bounds: timeouts, threads, and code that blocks the event loop."""
