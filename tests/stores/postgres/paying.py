"""Workflows whose bodies write to tables of the user, and a worker process of them that dies at a named place.

`python -m tests.stores.postgres.paying URL PLACE`: kills itself when it first comes to PLACE.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from stepwell import Context, Engine, Workflow, step
from stepwell.stores.postgres import transactions

LEASE_SECONDS = 2.0


class Pay(Workflow):
    table: str

    @step(transaction=True)
    def pay(self, ctx: Context) -> str:
        ctx.db.execute(f"INSERT INTO {self.table} VALUES (%s, 'pay')", (ctx.run_id,))
        die("in the body")
        return "paid"

    @step(transaction=True)
    def book(self, ctx: Context, pay: str) -> str:
        ctx.db.execute(f"INSERT INTO {self.table} VALUES (%s, 'book')", (ctx.run_id,))
        return f"{pay} and booked"


PLACES = ("begin", "in the body", "SET CONSTRAINTS", "commit_batch", "pg_current_xact_id", "COMMIT", "after COMMIT")
die: Callable[[str], None] = lambda place: None  # noqa: E731


def plant(wanted: str) -> None:
    """Die when the transaction of a body comes to this place: right before the statement of that name is sent."""

    def die_there(place: str) -> None:
        if wanted == place:
            os.kill(os.getpid(), signal.SIGKILL)

    def commit(self: transactions.PostgresTransaction, batch: Any) -> Any:
        execute = self.connection.execute

        def watched(statement: Any, *arguments: Any, **options: Any) -> Any:
            for place in PLACES[2:6]:
                if place in str(statement):
                    die_there(place)
            result = execute(statement, *arguments, **options)
            if str(statement) == "COMMIT":
                die_there("after COMMIT")
            return result

        self.connection.execute = watched  # type: ignore[method-assign]
        return real_commit(self, batch)

    def begin(self: transactions.BodyTransactions) -> Any:
        die_there("begin")
        return real_begin(self)

    globals()["die"] = die_there
    real_commit, transactions.PostgresTransaction.commit = transactions.PostgresTransaction.commit, commit  # type: ignore[method-assign]
    real_begin, transactions.BodyTransactions.begin = transactions.BodyTransactions.begin, begin  # type: ignore[method-assign]


if __name__ == "__main__":
    from tests.stores.postgres import paying

    paying.plant(sys.argv[2])
    with Engine(sys.argv[1], workflows=[paying.Pay], lease_seconds=LEASE_SECONDS):
        sys.stdin.read()
