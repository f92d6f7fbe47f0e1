"""Rollouts as OpenTelemetry spans: `--osmosis-otel`."""
