"""What an operator, or a machine of the operator's, asks."""

from __future__ import annotations

from starlette.routing import Route

from .health import live, ready
from .metrics import show_metrics

OPERATIONS = [
    Route("/health", live, methods=["GET"]),
    Route("/health/ready", ready, methods=["GET"]),
    Route("/metrics", show_metrics, methods=["GET"]),
]
