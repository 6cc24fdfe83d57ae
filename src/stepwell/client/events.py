"""Server-sent events, followed through breaks of the connection."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any, NamedTuple

from ..codec import decode
from .transport import SECONDS, Transport, unreachable

QUIET_SECONDS = 45.0
"""A stream has a heartbeat every 15 s: one that is quiet for longer is broken."""
AGAIN_SECONDS = 0.5
GIVE_UP_SECONDS = 60.0
"""How long a server that cannot be reached is asked again."""


class Event(NamedTuple):
    """What a stream told: its kind ("journal", "run", "log", "end", "reset"), its place in the stream, and the data."""

    kind: str
    id: str | None
    data: dict[str, Any]


class EventReader:
    """Makes events of lines."""

    def __init__(self) -> None:
        self._fields: dict[str, str] = {}

    def line(self, line: str) -> Event | None:
        """The event that ends with this line, if one does."""
        if line:
            name, _, value = line.partition(": ")
            if name:  # what begins with a colon is a comment: a heartbeat
                self._fields[name] = value
            return None
        fields, self._fields = self._fields, {}
        if "data" not in fields:
            return None
        return Event(fields.get("event", ""), fields.get("id"), decode(fields["data"]))


def follow(transport: Transport, path: str, last: str | None, *, seconds: float | None = None) -> Iterator[Event]:
    """Every event, from after the one with the id `last` on; at most for so many seconds. Ends with the event `end`."""
    began, heard_at = time.monotonic(), time.monotonic()
    while True:
        left = None if seconds is None else began + seconds - time.monotonic()
        if left is not None and left <= 0:
            return
        try:
            quiet = QUIET_SECONDS if left is None else min(left, QUIET_SECONDS)
            with transport.stream(path, last=last, timeout=quiet) as lines:
                reading = EventReader()
                for line in lines:
                    event = reading.line(line)
                    if event is not None:
                        heard_at = time.monotonic()
                        last = event.id or last
                        yield event
                        if event.kind == "end":
                            return
        except transport.httpx.ReadTimeout:
            continue
        except transport.httpx.TransportError as error:
            if time.monotonic() - heard_at > GIVE_UP_SECONDS:
                raise unreachable(transport.url, error) from None
        time.sleep(AGAIN_SECONDS)


async def follow_on_loop(transport: Transport, path: str, last: str | None) -> AsyncIterator[Event]:
    """The same on a loop, which is not blocked; no thread is held."""
    httpx = transport.httpx
    wait = httpx.Timeout(SECONDS, read=QUIET_SECONDS)
    heard_at = time.monotonic()
    async with httpx.AsyncClient(base_url=transport.url, headers=transport.headers, timeout=wait) as client:
        while True:
            try:
                async with client.stream(
                    "GET", path, headers={} if last is None else {"Last-Event-ID": last}
                ) as answer:
                    if not answer.is_success:
                        await answer.aread()
                        transport.result(answer)
                    reading = EventReader()
                    async for line in answer.aiter_lines():
                        event = reading.line(line)
                        if event is not None:
                            heard_at = time.monotonic()
                            last = event.id or last
                            yield event
                            if event.kind == "end":
                                return
            except httpx.ReadTimeout:
                continue
            except httpx.TransportError as error:
                if time.monotonic() - heard_at > GIVE_UP_SECONDS:
                    raise unreachable(transport.url, error) from None
            await asyncio.sleep(AGAIN_SECONDS)
