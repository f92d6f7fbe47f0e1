"""HTTP to model endpoints: connections, TLS, proxies and base URLs."""
