"""Metrics in the text form of Prometheus. Labels are statuses, methods and routes: their number is bounded."""

from __future__ import annotations

from collections.abc import Iterator

from ..model import UNFINISHED_RUNS, RunStatus
from ..store import reader
from ..store.living import living
from .counting import BUCKETS, Requests
from .service import Service

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
COUNTED_UP_TO = 10_000
"""Runs of one status that are counted; more are told as this many."""


def metrics_text(service: Service) -> str:
    return "\n".join(_lines(service)) + "\n"


def _lines(service: Service) -> Iterator[str]:
    yield from _head("stepwell_runs", "gauge", f"Unfinished runs by status, counted up to {COUNTED_UP_TO}.")
    for status in RunStatus:
        if status in UNFINISHED_RUNS:
            yield f'stepwell_runs{{status="{status}"}} {_count(service, status)}'
    yield from _head("stepwell_workers", "gauge", "Workers with a lease.")
    yield f"stepwell_workers {len(living(service.store))}"
    yield from _head("stepwell_streams", "gauge", "Streams of events that are open.")
    yield f"stepwell_streams {service.feed.streams}"
    requests = service.requests
    if requests is not None:
        yield from _request_lines(requests)
    if service.worker is not None:
        for name, value in service.worker.metrics._asdict().items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                kind = "counter" if name.startswith(("total", "done", "claimed", "settled", "commits")) else "gauge"
                yield from _head(f"stepwell_runner_{name}", kind, "See docs/metrics.md.")
                yield f"stepwell_runner_{name} {value}"


def _count(service: Service, status: RunStatus) -> int:
    found = 0
    for _ in reader.all_runs(service.store, status):
        found += 1
        if found >= COUNTED_UP_TO:
            break
    return found


def _request_lines(requests: Requests) -> Iterator[str]:
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
