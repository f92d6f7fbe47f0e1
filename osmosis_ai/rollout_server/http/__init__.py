"""The server's HTTP side: routes, messages and authentication."""
