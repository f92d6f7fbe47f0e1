"""Pages in headless Chromium; `tox -e browser` has what they need."""
