"""Tracing at the seams."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ...errors import ConfigurationError
from ...session.seams import Feature

if TYPE_CHECKING:
    from ...rollouts.around import AroundRuns
    from ...rollouts.suite import Suite
    from ...spec import SessionSpec


class TracingFeature(Feature):
    """Sends spans of the rollouts of each process."""

    def check(self, spec: SessionSpec) -> None:
        """Raise ConfigurationError where the extra is not installed."""
        try:
            import opentelemetry.exporter.otlp.proto.http.trace_exporter  # noqa: F401
        except ImportError:
            raise ConfigurationError(
                "--osmosis-otel needs the extra otel: pip install 'pytest-osmosis[otel]'"
            ) from None

    def around_runs(
        self, suites: Mapping[str, Suite], send: Callable[[str], None] | None
    ) -> AroundRuns:
        """Return what makes the spans of this process."""
        from .spans import Tracing

        return Tracing(suites)
