"""Transactions of bodies: what a body writes to the user's tables and its settlement are committed together.

The settlement is the last statement, so nobody else waits for the row of the run while the body works, and no lock is taken
after it. A COMMIT whose answer was lost is never sent again: what became of it is looked up.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from ...base.ids import AttemptId, split_attempt_id
from ...core.model import Answer, AttemptStatus, Batch, Refused, Settle
from ...core.store.hooks import CommitHooks
from ...core.store.rules.codes import ATTEMPT_CODE, ORDINALS
from ...errors import DefinitionError, StoreError
from .connections import ConnectionPool, worth_repeating
from .schema import quoted

Call = Callable[[psycopg.Connection[Any], Batch], Answer]
"""Applies a batch on a connection."""

_BODY_SETTINGS = {
    # A body takes as long as it likes. If its machine is gone, the server notices.
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}
_LAST_SETTINGS = (
    # From the settlement on the row of the run is locked: a worker that is stopped now must not hold up the others.
    "SELECT set_config('statement_timeout', '60s', true), set_config('lock_timeout', '20s', true), "
    "set_config('idle_in_transaction_session_timeout', '10s', true)"
)
_XID = "SELECT pg_current_xact_id()::text"
_ATTEMPT = """
SELECT a.status FROM {schema}.claim c JOIN {schema}.attempt a ON a.key = c.key * {ordinals} + %s WHERE c.id = %s
"""
KEPT = 2
"""Connections that wait for the next body."""
LOOK_SECONDS = 0.2
"""How often it is looked whether a transaction whose COMMIT was not answered has ended."""


class BodyTransactions:
    def __init__(self, connections: ConnectionPool, schema: str, call: Call, hooks: CommitHooks) -> None:
        self.hooks = hooks
        self._connections, self.call, self.translated = connections, call, connections.translated
        self._attempt = _ATTEMPT.format(schema=quoted(schema), ordinals=ORDINALS)
        self._kept: list[psycopg.Connection[Any]] = []
        self._lock = threading.Lock()
        self._closed = False

    def begin(self) -> PostgresTransaction:
        """In a session that nothing is left in: whatever a body does to its own ends with it."""
        try:
            connection = self._take() or self._connections.connect(" transaction", ours=False)
            try:
                return PostgresTransaction(self, connection)
            except BaseException:
                connection.close()
                raise
        except psycopg.Error as error:
            raise self._connections.translated(error) from None

    def keep(self, connection: psycopg.Connection[Any]) -> bool:
        """Take back a connection that has committed and that only the caller holds. False: it is the caller's to close."""
        with self._lock:
            if self._closed or self._connections.pooled or len(self._kept) >= KEPT:
                return False
            session, threshold = connection.pgconn, connection.prepare_threshold
            del connection.pgconn  # the object goes, with all that a body may have set on it; the session stays
            fresh: psycopg.Connection[Any] = psycopg.Connection(session)
            fresh.prepare_threshold = threshold
            fresh.autocommit = True
            self._kept.append(fresh)
            return True

    def _take(self) -> psycopg.Connection[Any] | None:
        while True:
            with self._lock:
                if not self._kept:
                    return None
                connection = self._kept.pop()
            try:
                connection.execute("DISCARD ALL")
                return connection
            except psycopg.Error:  # it broke meanwhile
                connection.close()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            kept, self._kept = self._kept, []
        for connection in kept:
            connection.close()

    def is_committed(self, xid: str, attempt: AttemptId) -> bool:
        """What became of a transaction whose COMMIT was not answered; waits until somebody can tell.

        `pg_xact_status` says when it has ended. Whether it was committed the row of the attempt says: after a fail-over that
        lost a tail, the number may be that of another transaction.
        """
        claim, ordinal = split_attempt_id(attempt)
        while True:
            try:
                with self._connections.one() as connection:
                    if not _in_progress(connection, xid):
                        row = connection.execute(self._attempt, (ordinal, claim)).fetchone()
                        return row is not None and row[0] == ATTEMPT_CODE[AttemptStatus.COMPLETED]
            except psycopg.Error as error:
                if not worth_repeating(error):
                    raise self.translated(error) from None
            time.sleep(LOOK_SECONDS)


def _in_progress(connection: psycopg.Connection[Any], xid: str) -> bool:
    try:
        row = connection.execute("SELECT pg_xact_status(%s::xid8)", (xid,)).fetchone()
    except psycopg.errors.InvalidParameterValue:  # from the future: the server lost what came after some commit
        return False
    return row is not None and row[0] == "in progress"


class PostgresTransaction:
    def __init__(self, transactions: BodyTransactions, connection: psycopg.Connection[Any]) -> None:
        self._transactions = transactions
        self.connection = connection
        self.cancelled = False
        self._kept = False
        """Its session is another's now."""
        self._ending = threading.Lock()
        self._mark = f"{id(self)}-{time.monotonic_ns()}"
        """A setting that goes with the transaction: it tells whether a body has ended it by a statement of its own."""
        # psycopg refuses commit() and rollback() within it, and makes savepoints of what the body begins itself.
        self._block = connection.transaction()
        self._block.__enter__()
        settings = "; ".join(f"SET LOCAL {name} = '{value}'" for name, value in _BODY_SETTINGS.items())
        connection.execute(f"{settings}; SET LOCAL stepwell.transaction = '{self._mark}'".encode())

    def commit(self, batch: Batch) -> Answer | None:
        return self._transactions.hooks.around(self._commit_and_end, batch)

    def _commit_and_end(self, batch: Batch) -> Answer | None:
        try:
            answer = self._commit(batch)
            if answer is not None:
                self._keep()
            return answer
        finally:
            self.undo()  # what was not committed

    def _keep(self) -> None:
        """Unless it was cancelled, which may arrive at the server only now, or the body has kept the connection or a cursor:
        whoever gets the session next is to be alone in it."""
        with self._ending:
            del self._block
            if not (self.cancelled or self.connection.closed) and _references(self) == _UNSHARED:
                self._kept = self._transactions.keep(self.connection)

    def _commit(self, batch: Batch) -> Answer | None:
        connection = self.connection
        connection.row_factory, connection.cursor_factory = tuple_row, psycopg.Cursor  # the body may have set its own
        self._check_still_open()
        connection.execute("SET CONSTRAINTS ALL IMMEDIATE")  # or they would be checked after the settlement
        try:
            connection.execute(_LAST_SETTINGS)
            answer = self._transactions.call(connection, batch)
            if any(
                isinstance(op, Settle) and isinstance(receipt, Refused)
                for op, receipt in zip(batch, answer, strict=True)
            ):
                return None
            row = connection.execute(_XID).fetchone()
        except psycopg.Error as error:
            raise self._transactions.translated(error) from None
        assert row is not None
        try:
            done = connection.execute("COMMIT").statusmessage
        except psycopg.Error as error:
            (attempt,) = {op.attempt for op in batch if isinstance(op, Settle)}
            if self.is_of_server(error) and self._transactions.is_committed(row[0], attempt):
                return answer
            raise self._transactions.translated(error) from None
        if done != "COMMIT":
            raise StoreError(f"the server answered {done} to COMMIT; nothing of this transaction was written")
        return answer

    def is_of_server(self, error: BaseException) -> bool:
        return isinstance(error, psycopg.Error) and (self.connection.broken or worth_repeating(error))

    def _check_still_open(self) -> None:
        status = self.connection.info.transaction_status
        if status == TransactionStatus.INERROR:
            raise DefinitionError(
                "a statement of this body failed, and the body went on: its transaction can only be undone. A block "
                "`with ctx.db.transaction():` around what may fail undoes that part alone"
            )
        if status == TransactionStatus.INTRANS:
            row = self.connection.execute("SELECT current_setting('stepwell.transaction', true)").fetchone()
            if row is not None and row[0] == self._mark:
                return
        raise DefinitionError(
            "this body has ended its transaction by itself, or closed ctx.db: what it wrote may be there, or not. The "
            "transaction is committed when the body returns, and undone when it raises"
        )

    def undo(self) -> None:
        if not self._kept:
            with contextlib.suppress(Exception):
                self.connection.close()

    def cancel(self) -> None:
        with self._ending:
            if self._kept:
                return
            self.cancelled = True
        with contextlib.suppress(psycopg.Error):
            self.connection.cancel_safe(timeout=5.0)


class _Holder:
    def __init__(self) -> None:
        self.connection = object()


def _references(holder: PostgresTransaction | _Holder) -> int:
    return sys.getrefcount(holder.connection)


_UNSHARED = _references(_Holder())
"""As many as there are when nobody else has one; how they are counted depends on the version of Python."""
