"""`transaction=True`: bodies that write to the user's tables in the same transaction as their settlement."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from ...core.kernel import settling
from ...core.kernel.settling import Later
from ...core.model import AttemptStatus, Op, Settle, Settled
from ...core.store.port import BodyTransaction, Transactions
from ...errors import DefinitionError, RetryLater, StoreError
from .attempt import AnyCoroutine, Attempt, FrozenAt, Pause, settle
from .held import Held
from .host import EngineHost, Services
from .raised import Raised

AGAIN_SECONDS = 1.0
"""After this time a body runs again if the server has rolled back its transaction."""
Complete = Callable[[Held, Settle], list[Op]]
"""The ops to commit in the transaction of a body, its settlement last."""


class TransactionHost(EngineHost):
    __slots__ = ("transaction",)

    def __init__(self, held: Held, services: Services) -> None:
        super().__init__(held, services)
        self.transaction: BodyTransaction | None = None

    def db(self) -> Any:
        assert self.transaction is not None, "a body begins after its transaction"
        return self.transaction.connection


class TransactionAttempt(Attempt):
    """The transaction begins before the body and ends with it, in the same thread.

    When the body returns, its settlement is written last in the transaction. If the store refuses that, because the attempt is
    fenced, everything is rolled back.
    """

    __slots__ = ("_complete", "_transactions")
    host: TransactionHost
    host_type = TransactionHost

    def __init__(
        self,
        held: Held,
        services: Services,
        frozen_at: FrozenAt,
        complete: Complete,
        *,
        pause: Pause | None = None,
        guarded: bool = False,
    ) -> None:
        super().__init__(held, services, frozen_at, pause=pause, guarded=guarded)
        self._transactions: Transactions | None = services.transactions
        self._complete = complete

    def perform(self) -> Settle | AnyCoroutine:
        if self._transactions is None:
            return self.raised(DefinitionError(no_transactions(self.held.spec.name)))
        try:
            transaction = self.host.transaction = self._transactions.begin()
        except StoreError:  # the body has not begun
            return settle(self.held, settling.RELEASED)
        self.held.cancel = transaction.cancel
        try:
            ended = super().perform()
            if isinstance(ended, Coroutine):
                ended.close()
                ended = self.raised(DefinitionError("transaction=True: this body returned a coroutine; ctx.db blocks"))
            if ended.status is not AttemptStatus.COMPLETED or self.held.over:
                return ended
            return self._settled(transaction, ended)
        finally:
            self.held.cancel = None
            transaction.undo()

    def _settled(self, transaction: BodyTransaction, settlement: Settle) -> Settle:
        ops = self._complete(self.held, settlement)
        try:
            answer = transaction.commit(ops)
        except StoreError as error:
            return self._again(Raised.of(error), None)
        except BaseException as error:
            return self.raised(error)
        # Fenced. Not settled as completed: after a fail-over the store might accept that, without what the body wrote.
        if answer is None:
            return settle(self.held, settling.lost(self.held.spec))
        assert isinstance(answer[-1], Settled)
        self.held.answer = answer[-1]
        return settlement

    def raised(self, error: BaseException) -> Settle:
        transaction = self.host.transaction
        if transaction is None:
            return super().raised(error)
        if transaction.cancelled and self.held.stop:
            self.context._leave()
            return settle(self.held, settling.stopped(self.held.spec))
        if transaction.is_of_server(error):
            self.context._leave()
            return self._again(Raised.of(error), self._outcome())
        return super().raised(error)

    def _again(self, raised: Raised, outcome: bytes | None) -> Settle:
        """The server rolled back what the body wrote, through no fault of the body: run it again."""
        if self.held.spec.on_lost == "interrupt":
            return settle(self.held, settling.lost(self.held.spec), outcome=outcome)
        return self._failed(raised._replace(later=Later(AGAIN_SECONDS, RetryLater.LIMIT)), outcome)


def no_transactions(node: str) -> str:
    return (
        f"node {node!r} has transaction=True, and this store is no PostgreSQL server: what its body writes and its completion "
        "could not be committed together. Use a postgresql:// store, or leave the option out"
    )
