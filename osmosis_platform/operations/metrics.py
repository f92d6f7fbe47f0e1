"""The platform's figures, as Prometheus reads them; for the token that the operator has set.

They count, and name no workspace, user or run.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from sqlalchemy import func, select
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from ..database.connection import Database
from ..database.models import Run, now
from ..errors import Refused
from ..execution.scheduler import Scheduler
from ..http.identity import bearer_token, is_same, unauthorized
from ..http.observing import ObservedRequest
from ..runs.records import UNDER_WAY
from ..settings import Settings

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """The figures of one process, and of the database that it shares."""

    def __init__(self, database: Database, data: Path, scheduler: Scheduler | None) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        self._registry.register(_Runs(database, scheduler))
        self._registry.register(_Folder(data))
        labels = ("method", "route", "status")
        self._requests = Counter(
            "osmosis_http_requests", "Requests that were answered.", labels, registry=self._registry
        )
        self._durations = Histogram(
            "osmosis_http_request_duration_seconds",
            "How long requests took.",
            ("method", "route"),
            buckets=_BUCKETS,
            registry=self._registry,
        )

    def observe(self, exchange: ObservedRequest) -> None:
        """Count a request."""
        self._requests.labels(exchange.method, exchange.route, exchange.status).inc()
        self._durations.labels(exchange.method, exchange.route).observe(exchange.duration_s)

    def text(self) -> bytes:
        """Return all figures."""
        return generate_latest(self._registry)


async def show_metrics(request: Request) -> Response:
    """Answer with the figures, for the operator's token."""
    settings: Settings = request.app.state.settings
    if settings.metrics_token is None:
        raise Refused(404, "not_found", "there are no metrics: the operator has set no token")
    if not is_same(bearer_token(request), settings.metrics_token.reveal()):
        raise unauthorized()
    metrics: Metrics = request.app.state.metrics
    return Response(await run_in_threadpool(metrics.text), media_type=CONTENT_TYPE)


class _Runs(Collector):
    """Counted in the database when it is asked for."""

    def __init__(self, database: Database, scheduler: Scheduler | None) -> None:
        self._database = database
        self._scheduler = scheduler

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the figures."""
        runs = GaugeMetricFamily("osmosis_runs", "Submitted runs.", labels=("kind", "status"))
        query = select(Run.kind, Run.status, func.count()).group_by(Run.kind, Run.status)
        oldest = select(func.min(Run.created_at)).where(UNDER_WAY, Run.status == "pending")
        with self._database.reading() as session:
            for kind, status, count in session.execute(query):
                runs.add_metric((kind, status), count)
            since = session.scalar(oldest)
        yield runs
        waited_s = 0.0 if since is None else (now() - since).total_seconds()
        yield GaugeMetricFamily(
            "osmosis_runs_oldest_pending_seconds", "How long a run has waited.", max(0.0, waited_s)
        )
        if self._scheduler is not None:
            executing = "Runs that this process executes."
            yield GaugeMetricFamily("osmosis_runs_executing", executing, self._scheduler.executing)
            at_most = "Runs that it executes at once at most."
            yield GaugeMetricFamily("osmosis_runs_at_once", at_most, self._scheduler.max_runs)


class _Folder(Collector):
    def __init__(self, data: Path) -> None:
        self._data = data

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the room on the disk of the data folder."""
        free = shutil.disk_usage(self._data).free
        yield GaugeMetricFamily("osmosis_data_free_bytes", "Free where the data is.", free)
