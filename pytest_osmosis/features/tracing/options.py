"""The option of tracing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...options.table import SHARD_KINDS, FeatureEntry, Option, OptionSet

if TYPE_CHECKING:
    import pytest

    from ...session.seams import Feature


def _make(config: pytest.Config, part: bool) -> Feature:
    from .feature import TracingFeature

    return TracingFeature()


TRACING = FeatureEntry(
    "tracing",
    [
        OptionSet(
            "reports",
            (
                Option(
                    "otel",
                    "send rollouts, model calls, tool calls and scores as OpenTelemetry spans to "
                    "where OTEL_EXPORTER_OTLP_ENDPOINT says; needs the extra otel",
                    flag=True,
                    excludes=tuple(SHARD_KINDS),
                ),
            ),
            after="debug-dir",
        )
    ],
    read=lambda given: given("otel") or None,
    make=_make,
)
