"""What tests share: endpoints, projects, platforms, made results; no tests."""
