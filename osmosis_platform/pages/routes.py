"""Every page."""

from __future__ import annotations

from starlette.routing import Route

from .device import decide, show_device
from .login import log_in, log_out, show_login
from .rendering import home, page, style

PAGES = [
    Route("/", page(home), methods=["GET"]),
    Route("/login", page(show_login), methods=["GET"]),
    Route("/login", page(log_in), methods=["POST"]),
    Route("/logout", page(log_out), methods=["POST"]),
    Route("/device", page(show_device), methods=["GET"]),
    Route("/device", page(decide), methods=["POST"]),
    Route("/page.css", style, methods=["GET"]),
]
