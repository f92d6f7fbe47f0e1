"""Rollouts as OpenTelemetry spans: `--osmosis-otel`."""

from __future__ import annotations

from ...options.table import FeatureEntry, Option, OptionSet

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
                ),
            ),
            after="debug-dir",
        )
    ],
    read=lambda given: given("otel") or None,
    feature="TracingFeature",
)
