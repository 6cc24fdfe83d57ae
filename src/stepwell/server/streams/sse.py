"""Server-sent events: the text that a stream sends, and how it is woken."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager
from typing import Annotated, Any, TypeAlias

from pydantic import Field
from starlette.responses import StreamingResponse
from starlette.types import Receive, Send
from starlette.types import Scope as AsgiScope

from ...answers.streams import (
    EndMessage,
    GoneMessage,
    JournalMessage,
    LogMessage,
    ResetMessage,
    RunMessage,
    StateMessage,
)
from ...base.codec import text

HEARTBEAT_SECONDS = 15.0
HEARTBEAT = b": heartbeat\n\n"
BEGIN = b"retry: 2000\n\n"
HEADERS = {"X-Accel-Buffering": "no", "Cache-Control": "no-store, no-transform"}
"""No proxy may keep events to itself."""
Message: TypeAlias = JournalMessage | LogMessage | RunMessage | EndMessage | ResetMessage | StateMessage | GoneMessage


def describe_stream(messages: Any) -> dict[int | str, dict[str, Any]]:
    """What OpenAPI says of a stream that sends these kinds of messages."""
    description = "Server-sent events. Each is an `event`, perhaps an `id`, and `data` as JSON."
    return {200: {"description": description, "model": Annotated[messages, Field(discriminator="event")]}}


def event(message: Message) -> bytes:
    """
    >>> event({"event": "end", "data": {"run": "r", "status": None}})
    b'event: end\\ndata: {"run":"r","status":null}\\n\\n'
    """
    place = message.get("id")
    assert place is None or isinstance(place, int)
    return written_event(message["event"], text(message["data"]), place)


def written_event(kind: str, data: str, place: int | None = None) -> bytes:
    """The same for data that is JSON already."""
    head = f"event: {kind}\n" + ("" if place is None else f"id: {place}\n")
    return f"{head}data: {data}\n\n".encode()


def moved(place: int) -> bytes:
    """No event: only the id that the client sends when it reconnects."""
    return f"id: {place}\n\n".encode()


class Listener:
    """One stream, on its loop: other threads wake it when there is something for it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()

    def wake(self) -> None:
        with contextlib.suppress(RuntimeError):  # its loop was closed
            self._loop.call_soon_threadsafe(self._changed.set)

    async def wait(self, seconds: float) -> bool:
        """Wait to be woken; False if that takes longer."""
        try:
            await asyncio.wait_for(self._changed.wait(), seconds)
        except TimeoutError:
            return False
        self._changed.clear()
        return True


class EventStream(StreamingResponse):
    """A stream that takes its place when it begins, and gives it back whatever ends it."""

    media_type = "text/event-stream"

    def __init__(self, room: AbstractContextManager[None], events: AsyncIterator[bytes]) -> None:
        super().__init__(events, headers=HEADERS)
        self._room = room

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        with self._room:
            await super().__call__(scope, receive, send)
