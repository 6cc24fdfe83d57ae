"""Metrics in the text form of Prometheus. Labels are statuses, methods and routes: their number is bounded."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from ..core.model import UNFINISHED_RUNS, RunStatus
from ..core.store import reader
from ..core.store.living import living
from ..engine.bodies.kinds import ByKind
from ..engine.reports.workers import is_idle
from ..engine.scheduling.metrics import EngineMetrics
from .counting import BUCKETS, RequestCounts
from .service import ServerProcess

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
COUNTED_UP_TO = 10_000
"""Runs of one status that are counted; more are told as this many."""
_NOW = frozenset({"active", "queued", "most_queued", "step_seconds", "ops_per_commit", "commit_seconds"})
"""Metrics of an engine that can fall (gauges); the others are counters."""


def metrics_text(service: ServerProcess) -> str:
    return "\n".join(_lines(service)) + "\n"


def _lines(service: ServerProcess) -> Iterator[str]:
    yield from _head(
        "stepwell_runs", "gauge", f"Unfinished runs by status, without child runs, counted up to {COUNTED_UP_TO}."
    )
    for status in RunStatus:
        if status in UNFINISHED_RUNS:
            roots = (row for row in reader.all_runs(service.store, status) if row.parent is None)
            found = sum(1 for _ in islice(roots, COUNTED_UP_TO))
            yield f'stepwell_runs{{status="{status}"}} {found}'
    alive = living(service.store)
    yield from _head("stepwell_workers", "gauge", "Workers with a lease.")
    yield f"stepwell_workers {len(alive)}"
    yield from _head("stepwell_workers_idle", "gauge", "Workers that claim nothing though work is ready for them.")
    yield f"stepwell_workers_idle {sum(map(is_idle, alive))}"
    yield from _head("stepwell_streams", "gauge", "Streams of events that are open.")
    yield f"stepwell_streams {service.feed.streams}"
    requests = service.requests
    if requests is not None:
        yield from _request_lines(requests)
    if service.worker is not None:
        yield from _runner_lines(service.worker.metrics)


def _runner_lines(metrics: EngineMetrics) -> Iterator[str]:
    """Metrics of the runner in this process, except those by run: their labels would be unbounded."""
    for name, value in metrics._asdict().items():
        if not isinstance(value, int | float | ByKind):
            continue
        full_name = f"stepwell_runner_{name}" if name in _NOW else f"stepwell_runner_{name}_total"
        yield from _head(full_name, "gauge" if name in _NOW else "counter", "See docs/metrics.md.")
        if isinstance(value, ByKind):
            for body, number in value._asdict().items():
                yield f'{full_name}{{body="{body}"}} {number}'
        else:
            yield f"{full_name} {value}"


def _request_lines(requests: RequestCounts) -> Iterator[str]:
    yield from _head("stepwell_http_requests_total", "counter", "Requests by method, route and status.")
    for (method, path, status), count in sorted(requests.counts.items()):
        yield f'stepwell_http_requests_total{{method="{method}",route="{path}",status="{status}"}} {count}'
    yield from _head("stepwell_http_request_seconds", "histogram", "Time until an answer began.")
    total = 0
    for bound in BUCKETS:
        total += requests.buckets[bound]
        yield f'stepwell_http_request_seconds_bucket{{le="{bound}"}} {total}'
    total += requests.buckets[float("inf")]
    yield f'stepwell_http_request_seconds_bucket{{le="+Inf"}} {total}'
    yield f"stepwell_http_request_seconds_sum {requests.seconds:.6f}"
    yield f"stepwell_http_request_seconds_count {total}"


def _head(name: str, kind: str, told: str) -> Iterator[str]:
    yield f"# HELP {name} {told}"
    yield f"# TYPE {name} {kind}"
