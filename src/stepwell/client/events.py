"""Server-sent events, followed through breaks of the connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from math import inf
from time import monotonic, sleep

from ..base.codec import decode
from ..engine.following import Event, check_until
from ..errors import StoreError
from .transport import SECONDS, Transport, path_of, unreachable

QUIET_SECONDS = 45.0
"""A stream has a heartbeat every 15 s; one that is silent for longer is taken to be broken."""
AGAIN_SECONDS = 0.5
GIVE_UP_SECONDS = 60.0
"""How long to retry a server that cannot be reached."""


class EventReader:
    """Parses lines into events. `last` is the latest id, which may come without an event."""

    def __init__(self, last: str | None) -> None:
        self.last = last
        self._fields: dict[str, str] = {}

    def line(self, line: str) -> Event | None:
        """The event that ends with this line, if one does."""
        if line:
            name, _, value = line.partition(": ")
            if name:  # what begins with a colon is a comment: a heartbeat
                self._fields[name] = value
            return None
        fields, self._fields = self._fields, {}
        self.last = fields.get("id") or self.last
        if "data" not in fields:
            return None
        return Event(fields.get("event", ""), fields.get("id"), decode(fields["data"]))


def path_of_events(run_id: str | None, until: str | None) -> tuple[str, dict[str, str]]:
    """The path and query of the events of a run, or of all runs."""
    check_until(run_id, until)
    asked = {} if until is None else {"until": until}
    return (path_of("events") if run_id is None else path_of("runs", run_id, "events")), asked


def follow(
    transport: Transport,
    path: str,
    last: str | None,
    asked: Mapping[str, str] | None = None,
    *,
    seconds: float | None = None,
) -> Iterator[Event]:
    """Events after the one with the id `last`, until the event `end` or for at most `seconds`."""
    heard_at = monotonic()
    until = inf if seconds is None else heard_at + seconds
    while (left := until - monotonic()) > 0:
        try:
            with transport.stream(path, last=last, timeout=min(left, QUIET_SECONDS), **asked or {}) as lines:
                reading = EventReader(last)
                for line in lines:
                    heard_at = monotonic()
                    event = reading.line(line)
                    last = reading.last
                    if event is not None:
                        yield event
                        if event.kind == "end":
                            return
                    # How long to wait for a line is said when a stream is opened: near the end by another one.
                    if until < heard_at or (line.startswith(":") and until < heard_at + QUIET_SECONDS):
                        break
                else:
                    sleep(AGAIN_SECONDS)
        except transport.httpx.ReadTimeout:
            continue
        except (transport.httpx.TransportError, StoreError) as error:  # a server that ends, or begins, answers 503
            if monotonic() - heard_at > GIVE_UP_SECONDS:
                raise unreachable(transport.url, error) from None
            sleep(min(AGAIN_SECONDS, max(0.0, until - monotonic())))


async def follow_on_loop(
    transport: Transport, path: str, last: str | None, asked: Mapping[str, str] | None = None
) -> AsyncIterator[Event]:
    """The same for coroutines, without a thread."""
    httpx = transport.httpx
    wait = httpx.Timeout(SECONDS, read=QUIET_SECONDS)
    heard_at = monotonic()
    async with httpx.AsyncClient(base_url=transport.url, headers=transport.headers, timeout=wait) as client:
        while True:
            try:
                headers = {} if last is None else {"Last-Event-ID": last}
                async with client.stream("GET", path, params=dict(asked or {}), headers=headers) as answer:
                    if not answer.is_success:
                        await answer.aread()
                        transport.result(answer)
                    reading = EventReader(last)
                    async for line in answer.aiter_lines():
                        heard_at = monotonic()
                        event = reading.line(line)
                        last = reading.last
                        if event is not None:
                            yield event
                            if event.kind == "end":
                                return
            except httpx.ReadTimeout:
                continue
            except (httpx.TransportError, StoreError) as error:
                if monotonic() - heard_at > GIVE_UP_SECONDS:
                    raise unreachable(transport.url, error) from None
            await asyncio.sleep(AGAIN_SECONDS)
