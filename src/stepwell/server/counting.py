"""Counts requests, for the metrics."""

from __future__ import annotations

import threading
import time
from collections import Counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"})


class RequestCounts:
    """Counts requests by method, route and status, and how long they took."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._lock = threading.Lock()
        self.counts: Counter[tuple[str, str, int]] = Counter()
        self.buckets: Counter[float] = Counter()
        self.seconds = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._count(scope, status, time.perf_counter() - began)
            await send(message)

        await self.app(scope, receive, note)

    def _count(self, scope: Scope, status: int, took: float) -> None:
        """Counts the time until the answer begins, because a stream lasts as long as its listener."""
        route = scope.get("route")
        path = getattr(route, "path", None) or "(none)"
        method = scope["method"] if scope["method"] in METHODS else "(other)"
        with self._lock:
            self.counts[method, path, status] += 1
            self.seconds += took
            self.buckets[next((bound for bound in BUCKETS if took <= bound), float("inf"))] += 1
