"""The store on a PostgreSQL server."""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

import psycopg

from ...base.clock import Clock
from ...base.ids import RunId, WorkerId
from ...core.model import Answer, Batch, Hint, Query, Swept
from ...core.store.hooks import CommitHooks
from ...core.store.rules.processes import check_process
from ...errors import StoreError
from . import schema
from .address import parse
from .connections import ConnectionPool, worth_repeating
from .durability import PostgresDurability, inspect
from .hints import HintListener, Sender
from .reading import question
from .receipts import attempts
from .request import BatchCall
from .schema import LIMITS, quoted
from .transactions import BodyTransactions

T = TypeVar("T")
log = logging.getLogger("stepwell")

RETRY_SECONDS = 10.0
"""For how long a batch is sent again after the connection broke, before whoever sent it is told."""

_COMMIT = """
SELECT o_receipts, o_now, o_bytes, o_stop
  FROM {schema}.commit_batch(%s::jsonb, %s::text[], %s::int[], %s::int[], %s::bigint[], %s::text[],
                         %s::bytea[], %s::bytea[], %s::bytea[], %s::bytea[], %s::bigint, %s::bigint)
"""
_NOW = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
_PLANS = """
SELECT set_config('search_path', %s, true), set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)
"""


class PostgresStore:
    """Runs on a PostgreSQL server, in a schema of their own.

    A commit is one call of a function of the schema: one round trip, one transaction, READ COMMITTED. It
    locks everything that it changes in one order, then reads the server's clock, and then decides. `durability` says what an
    acknowledged commit survives.
    """

    embedded = False
    needs_hints = True
    limits = LIMITS
    durability: PostgresDurability

    def __init__(
        self, url: str, *, clock: Clock | None = None, make_schema: bool = True, connections: int | None = None
    ) -> None:
        self._address = parse(url)
        self.url = self._address.url
        self._clock = clock
        self._pid = os.getpid()
        self._connections = ConnectionPool(self._address, connections)
        self._sender = Sender(self._connections, self._address.schema)
        self._listener = HintListener(self._connections, self._address.schema)
        self.hooks = CommitHooks()
        self.transactions = BodyTransactions(
            self._connections,
            self._address.schema,
            lambda connection, batch: self._send(connection, BatchCall(batch)),
            self.hooks,
        )
        self._commit_statement = _COMMIT.format(schema=quoted(self._address.schema))
        self._ahead = 0
        """What the server's clock is ahead of this machine's monotonic one, as of the last answer."""
        self._ends = threading.Event()
        self._said = False

        def begin(connection: psycopg.Connection[Any]) -> None:
            if make_schema:
                schema.make(connection, self._address.schema, self.url)
            self.durability = inspect(connection, self.url)
            row = connection.execute(_NOW).fetchone()
            assert row is not None
            self._learn_time(row[0])

        try:
            self._patiently(begin, 0.0)
        except BaseException:
            self._connections.close()
            raise

    def commit(self, batch: Batch) -> Answer:
        return self.hooks.around(self._commit, batch)

    def _commit(self, batch: Batch) -> Answer:
        self._check_process()
        request = BatchCall(batch)
        if request.empty and batch:
            return Answer(request.receipts((), None), self.now())
        return self._patiently(lambda connection: self._send(connection, request), RETRY_SECONDS, commits=True)

    def _send(self, connection: psycopg.Connection[Any], request: BatchCall) -> Answer:
        exact, shift = self._test_clock()
        began = time.monotonic()
        row = connection.execute(
            self._commit_statement, (*request.parameters(), exact, shift), prepare=self._prepare, binary=True
        ).fetchone()
        assert row is not None
        receipts, now, payloads, stop = row
        if self._clock is None:
            self._learn_time(now)
        stops = tuple(attempt for pairs in stop or () for attempt in attempts(pairs))
        answer = Answer(request.receipts(receipts, payloads), now, stops)
        if len(answer) == 1 and type(answer[0]) is Swept:
            self._listener.heard.swept(answer[0].workers, time.monotonic() - began)
        return answer

    def read(self, queries: Sequence[Query]) -> list[Any]:
        self._check_process()
        questions = [question(query) for query in queries]

        def ask(connection: psycopg.Connection[Any]) -> list[list[Any]]:
            if len(questions) == 1 and not self._address.pooled:
                return [connection.execute(questions[0].statement, questions[0].given, binary=True).fetchall()]
            with connection.pipeline():
                connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                if self._address.pooled:
                    connection.execute(_PLANS, (quoted(self._address.schema),))
                found = [connection.execute(asked.statement, asked.given) for asked in questions]
                connection.execute("COMMIT")
            return [cursor.fetchall() for cursor in found]

        rows = self._patiently(ask, RETRY_SECONDS)
        return [asked.read(answer) for asked, answer in zip(questions, rows, strict=True)]

    def now(self) -> int:
        exact, shift = self._test_clock()
        return (self._ahead + time.monotonic_ns() // 1_000 if exact is None else exact) + shift

    def send_hint(self, hint: Hint) -> None:
        """In a transaction of its own that nobody waits for."""
        if self._pid == os.getpid():
            self._sender.send(hint)

    def wait_for_hint(
        self, queues: Collection[str] | None, runs: Collection[RunId], worker: WorkerId, timeout: float
    ) -> bool:
        self._check_process()
        self._check_open()
        if self._address.pooled:
            if not self._said:
                self._said = True
                log.info("%s is behind a pooler, where nobody can listen: this process polls", self.url)
            self._ends.wait(timeout)
            return False
        return self._listener.wait(queues, runs, worker, timeout)

    def close(self) -> None:
        if self._pid == os.getpid():  # A forked child closes nothing: it would end what its parent still uses.
            self._ends.set()
            self._listener.close()
            self._sender.close()
            self.transactions.close()
            self._connections.close()

    @property
    def _prepare(self) -> bool:
        return not self._address.pooled

    def _patiently(self, use: Callable[[psycopg.Connection[Any]], T], seconds: float, *, commits: bool = False) -> T:
        """Use a connection. What the server undid, and what may not have arrived, is asked again: a batch that is repeated
        answers the same question again."""
        self._check_open()
        give_up_at, pause = time.monotonic() + seconds, 0.01
        while True:
            try:
                with self._connections.one(commits=commits) as connection:
                    return use(connection)
            except psycopg.Error as error:
                last = self._ends.is_set() or time.monotonic() + pause > give_up_at
                if last or not worth_repeating(error):
                    raise self._connections.translated(error) from None
            self._ends.wait(random.uniform(pause / 2, pause))
            pause = min(2 * pause, 1.0)

    def _learn_time(self, now: int) -> None:
        self._ahead = now - time.monotonic_ns() // 1_000

    def _test_clock(self) -> tuple[int | None, int]:
        """(the time, or None for the server's; what is added to it)."""
        if self._clock is None:
            return None, 0
        offset = getattr(self._clock, "offset", None)
        return (None, offset) if isinstance(offset, int) else (self._clock.now(), 0)

    def _check_process(self) -> None:
        check_process(self._pid, self.url)

    def _check_open(self) -> None:
        if self._ends.is_set():
            raise StoreError(f"the store {self.url} is closed")
