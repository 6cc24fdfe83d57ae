"""Events as text: what a stream sends, and where a client left off."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import StreamingResponse

from ...codec import text

HEARTBEAT_SECONDS = 15.0
HEARTBEAT = b": heartbeat\n\n"
BEGIN = b"retry: 2000\n\n"
HEADERS = {"X-Accel-Buffering": "no", "Cache-Control": "no-store, no-transform"}
"""No proxy may keep events to itself."""


def event(kind: str, data: Any, place: str | int | None = None) -> bytes:
    """
    >>> event("run", {"status": "RUNNING"}, 7)
    b'event: run\\nid: 7\\ndata: {"status":"RUNNING"}\\n\\n'
    """
    return written_event(kind, text(data), place)


def written_event(kind: str, data: str, place: str | int | None = None) -> bytes:
    """The same of data that is written already: what many streams tell is written once."""
    head = f"event: {kind}\n" + ("" if place is None else f"id: {place}\n")
    return f"{head}data: {data}\n\n".encode()


def moved(place: int) -> bytes:
    """No event: only where the client is now, which it names when it comes back."""
    return f"id: {place}\n\n".encode()


def stream(events: AsyncIterator[bytes]) -> StreamingResponse:
    return StreamingResponse(events, headers=HEADERS, media_type="text/event-stream")
