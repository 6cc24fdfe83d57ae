"""Streams of server-sent events: of one run, of its log, and of all runs."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any, Literal

from fastapi import Header, Query
from starlette.requests import Request

from ...answers.nodes import JournalRecord
from ...answers.streams import EndMessage, JournalMessage, LogMessage, ResetMessage, RunMessage
from ...base.clock import SECOND
from ...base.codec import text
from ...base.ids import RunId
from ...core.model import JournalRow, ListJournal, ListRuns, RunRow
from ...core.store import reader
from ...core.store.rules.filtering import run_matches
from ...engine.following import pages_of_ended, pages_of_unfinished
from ...engine.runs.log_search import LogSearch, NewLines
from ...engine.runs.records import journal_record, line_record, run_change
from ...engine.runs.stored import SLACK
from ..access.guard import PRINCIPAL, Principal
from ..access.sessions import find_session
from ..access.tokens import get_token
from ..problems import HttpProblem
from ..routes import Routes
from ..service import Given, ServerProcess
from ..streams.feed import AT_ONCE, MAX_CHANGED, FeedStream
from ..streams.sse import BEGIN, HEARTBEAT, HEARTBEAT_SECONDS, EventStream, describe_stream, event, moved, written_event
from .runs import FilterQuery

routes = Routes("events")

OLDEST = 24 * 3_600 * SECOND
"""For how long a client can resume the stream of all runs."""
LOG_SECONDS = 0.25
"""Between two looks at the log of a run."""
TOKEN_SECONDS = HEARTBEAT_SECONDS / 2
"""How often the token of a stream is checked, so that a stream ends within a heartbeat of its token."""
LastEventId = Annotated[
    str | None, Header(alias="Last-Event-ID", max_length=100, description="Where the client left off.")
]

After = Annotated[int | None, Query(ge=0, lt=2**53, description="The same for who cannot send headers.")]


class EventQuery(FilterQuery):
    after: After = None


class Visitor:
    """The listener of a stream, which ends with the token or the session it was opened with."""

    def __init__(self, service: ServerProcess, request: Request) -> None:
        self._service = service
        principal: Principal | None = request.scope.get(PRINCIPAL)
        self._token = None if principal is None else principal.token
        self._session = None if principal is None else principal.session
        self._checked_at = time.monotonic()
        self._changes = service.callers.changes

    async def may_stay(self) -> bool:
        """Whether the token is still valid. Looks it up once in a while, and when tokens or sessions change in this process."""
        is_new = self._service.callers.changes == self._changes
        if self._token is None or (is_new and time.monotonic() < self._checked_at + TOKEN_SECONDS):
            return True
        self._checked_at, self._changes = time.monotonic(), self._service.callers.changes
        return await self._service.threads.run("caller", self._is_valid, self._token.id)

    def _is_valid(self, token_id: str) -> bool:
        store = self._service.store
        token = get_token(store, token_id) if self._session is None else find_session(store, self._session)
        return token is not None and token.status(store.now()) == "valid"


def _place(last: str | None) -> int | None:
    if last is None or last == "":
        return None
    if not (last.isascii() and last.isdigit()) or len(last) > 18:
        raise HttpProblem(400, "Last-Event-ID is not one of this server")
    return int(last)


@routes.get(
    "/runs/{run_id}/events",
    "read",
    response_class=EventStream,
    responses=describe_stream(JournalMessage | ResetMessage | EndMessage),
)
async def follow_run(
    run_id: str,
    service: Given,
    request: Request,
    last_event_id: LastEventId = None,
    after: After = None,
    until: Annotated[Literal["ended"] | None, Query(description="Close the stream once the run has ended.")] = None,
) -> EventStream:
    """The journal of a run as it is written, each entry once, in order, without a gap: `id` is its number.

    `reset`: the run is not the one it was (deleted, created again); begin anew, without Last-Event-ID.
    """
    row = await service.threads.run("stream", service.row, run_id)
    place = _place(last_event_id)
    place = (0 if after is None else after) if place is None else place
    return EventStream(
        service.feed.room(), _run_events(service, row, place, Visitor(service, request), until_ended=until == "ended")
    )


async def _run_events(
    service: ServerProcess, row: RunRow, place: int, visitor: Visitor, *, until_ended: bool
) -> AsyncIterator[bytes]:
    yield BEGIN
    if place > row.seq:
        yield event({"event": "reset", "data": {"run": row.id, "seq": row.seq}})
        place = 0
    with service.feed.watching(row.id, place) as watcher:
        journal = _Journal(service, row, place, watcher)
        while not watcher.closed and await visitor.may_stay():
            for entry in await journal.next():
                yield event({"event": "journal", "id": entry["seq"], "data": entry})
            if journal.behind:
                continue
            if until_ended and await journal.has_ended():
                yield event({"event": "end", "data": {"run": row.id, "status": journal.row.status}})
                return
            if not await watcher.wait(HEARTBEAT_SECONDS):
                if await journal.is_gone():
                    yield event({"event": "reset", "data": {"run": row.id, "seq": None}})
                    return
                yield HEARTBEAT


class _Journal:
    """The journal of a run, as far as one stream has sent it."""

    def __init__(self, service: ServerProcess, row: RunRow, place: int, watcher: FeedStream) -> None:
        self._service, self.row, self._place, self._watcher = service, row, place, watcher
        self.behind = True
        """There may be more entries in the store than the feed has sent."""

    async def next(self) -> list[JournalRecord]:
        pushed, dropped, _ = self._watcher.take()
        rows: list[JournalRow] = []
        for row in pushed:  # some may come again, because a stream that joined later had an earlier place
            if isinstance(row, JournalRow) and row.seq > (rows[-1].seq if rows else self._place):
                rows.append(row)
        if self.behind or dropped or (rows and rows[-1].seq != self._place + len(rows)):
            asked = ListJournal(self.row.id, self._place, AT_ONCE)
            (rows,) = await self._service.threads.run("stream", self._service.store.read, [asked])
            self.behind = len(rows) == AT_ONCE
        if not rows:
            return []
        if any(row.kind == "healed" for row in rows):
            self.row = await self._service.threads.run("stream", self._service.row, self.row.id)
        order = (await self._service.threads.run("stream", self._service.graph, self.row.digest, self.row.id)).order
        self._place = rows[-1].seq
        return [journal_record(row, order) for row in rows]

    async def has_ended(self) -> bool:
        self.row = await self._service.threads.run("stream", self._service.row, self.row.id)
        return self.row.status.terminal and self.row.seq <= self._place

    async def is_gone(self) -> bool:
        now = await self._service.threads.run("stream", reader.get_run, self._service.store, self.row.id)
        self.behind = now is not None and now.seq > self._place
        return now is None or now.created_at != self.row.created_at


@routes.get("/events", "read", response_class=EventStream, responses=describe_stream(RunMessage | ResetMessage))
async def follow_all(
    service: Given,
    request: Request,
    asked: Annotated[EventQuery, Query()],
    last_event_id: LastEventId = None,
) -> EventStream:
    """How runs stand, whenever that changes: all that fit, without a gap. The same may be told twice; runs have no order among
    each other. First come all runs that have not ended. Of the filter, `status` counts for nothing here, so that one hears of
    a run that no longer has it. A run loses its `error` when its failed nodes are asked for again, which a stream of one
    `error` does not tell.

    `reset`: too much has happened since the client left off; list the runs anew.
    """
    query = asked.query()._replace(statuses=())
    place = _place(last_event_id)
    events = _all_events(service, asked.after if place is None else place, Visitor(service, request), query)
    return EventStream(service.feed.room(), events)


async def _all_events(
    service: ServerProcess, since: int | None, visitor: Visitor, query: ListRuns
) -> AsyncIterator[bytes]:
    """Ids of this stream are times by which all ended runs were sent. So an id is sent, without an event, after each batch."""
    yield BEGIN
    with service.feed.watching(None) as watcher:
        now = await service.threads.run("stream", service.store.now)
        lost = since is not None and not now - OLDEST < since <= now + SLACK
        place = now if since is None or lost else since
        yield moved(place)
        pages, told = _missed(service, None if lost else since), 0
        while not lost and (page := await service.threads.run("stream", next, pages, None)) is not None:
            for row in page:
                if run_matches(row, query):
                    yield written_event("run", _written(service, row), place)
            told += len(page)
            lost = told > MAX_CHANGED
        place = now
        yield _reset(place) if lost else moved(place)
        while not watcher.closed and await visitor.may_stay():
            rows, dropped, as_of = watcher.take()
            for each in rows:
                if isinstance(each, RunRow) and run_matches(each, query):
                    yield written_event("run", _written(service, each), place)
            if rows or dropped:
                place = as_of
                yield _reset(place) if dropped else moved(place)
            elif not await watcher.wait(HEARTBEAT_SECONDS):
                yield HEARTBEAT


def _reset(place: int) -> bytes:
    return event({"event": "reset", "id": place, "data": {"run": None, "seq": None}})


def _missed(service: ServerProcess, since: int | None) -> Iterator[list[RunRow]]:
    """What is sent first, page by page: unfinished runs, and runs that ended since then."""
    yield from pages_of_unfinished(service.store)
    if since is not None:
        yield from pages_of_ended(service.store, since - SLACK)


def _written(service: ServerProcess, row: RunRow) -> str:
    """The JSON of a run, shared by all streams."""
    key = row.id, row.created_at, row.seq
    found = service.feed.written.get(key)
    if found is None:
        found = service.feed.written[key] = text(run_change(row))
    return found


@routes.get(
    "/runs/{run_id}/logs/events", "read", response_class=EventStream, responses=describe_stream(LogMessage | EndMessage)
)
async def follow_logs(
    run_id: str,
    service: Given,
    request: Request,
    node: Annotated[str | None, Query(max_length=4_000)] = None,
    attempt: Annotated[int | None, Query(ge=1, lt=2**31)] = None,
    last_event_id: LastEventId = None,
    until: Annotated[Literal["ended"] | None, Query(description="Close the stream once the run has ended.")] = None,
) -> EventStream:
    """What the bodies of a run log and print, as it is stored. After a break, lines of its last seconds may come twice."""
    run = await service.threads.run("stream", service.stored, run_id)
    index = None if node is None else await service.threads.run("stream", service.index_of, run, node)
    lines = NewLines(run, LogSearch(index, attempt, since=_place(last_event_id)))
    return EventStream(
        service.feed.room(), _log_events(service, lines, Visitor(service, request), until_ended=until == "ended")
    )


async def _log_events(
    service: ServerProcess, lines: NewLines, visitor: Visitor, *, until_ended: bool
) -> AsyncIterator[bytes]:
    yield BEGIN
    run_id: RunId = lines.run.row.id
    quiet = 0.0
    look: Callable[[], Any] = lines.next
    while not service.feed.closed and await visitor.may_stay():
        row = await service.threads.run("stream", reader.get_run, service.store, run_id)
        found = await service.threads.run("stream", look)
        for entry, line in found:
            yield event({"event": "log", "id": entry.at, "data": line_record(lines.run, entry, line)})
        if row is None or (until_ended and row.status.terminal):
            yield event({"event": "end", "data": {"run": run_id, "status": None if row is None else row.status}})
            return
        quiet = 0.0 if found else quiet + LOG_SECONDS
        if quiet >= HEARTBEAT_SECONDS:
            quiet = 0.0
            yield HEARTBEAT
        await service.feed.pause(LOG_SECONDS)
