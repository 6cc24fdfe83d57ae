"""The one door into a store: `commit` for every change, `read` for every question."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from ..model import (
    Append,
    Batch,
    Create,
    Op,
    Query,
    Receipt,
    Rewrite,
    RunStatus,
    Settle,
    may_become,
    may_rewrite,
)


class Store(Protocol):
    """Where runs are kept.

    `commit` applies the ops of a batch in order and returns one receipt for each; what it returned is durable. It is
    all or nothing: when it raises StoreError, either nothing was applied or the whole batch was, and sending the same
    batch again is safe and answers the same question again.
    """

    @property
    def url(self) -> str: ...

    @property
    def embedded(self) -> bool:
        """Whether only programs of its user write to it. The rows of a server may come from anybody, and what they name is
        run only if it is registered."""
        ...

    def commit(self, batch: Batch) -> list[Receipt]: ...

    def read(self, queries: Sequence[Query]) -> list[Any]:
        """The answers, in order, all from one moment. `store.reader` has a typed function for each query."""
        ...

    def now(self) -> int:
        """The store's clock: microseconds since 1970."""
        ...

    def version(self) -> int:
        """A number that differs from an earlier one when any run was changed in between, by anybody. Cheap."""
        ...

    def close(self) -> None: ...


_BEHIND_AN_OPEN_GATE = (RunStatus.PENDING, RunStatus.RUNNING)


def illegal_move(op: Rewrite, run: RunStatus) -> str | None:
    """The first move of a rewrite that no run or node may make, in words."""
    for row in op.rows:
        if row.status is not row.was and not may_rewrite(row.was, row.status):
            return f"node {row.index}: {row.was} -> {row.status}"
    if op.finish is None:
        return None
    if op.finish.status is RunStatus.COMPLETED and run is not RunStatus.COMPLETED:
        return "a run completes with the last of its nodes, and by nothing else"
    if not may_become(run, op.finish.status):
        return f"{run} -> {op.finish.status}"
    if op.finish.open_gate != (op.finish.status in _BEHIND_AN_OPEN_GATE):
        return f"{op.finish.status} behind {'an open' if op.finish.open_gate else 'a shut'} gate"
    return None


_FEW = 4


def groups(batch: Batch) -> Iterator[tuple[type[Op], list[int]]]:
    """Positions of neighbouring ops that are applied as one set.

    Neighbours of one kind form a set as long as no two of them are about the same attempt or run. Settlements of one set
    are judged against the gate as it stood before the set, so that a store may apply them all in one statement.
    """
    if len(batch) <= _FEW and len(set(map(type, batch))) == len(batch):  # what a chain commits, over and over
        for position, op in enumerate(batch):
            yield type(op), [position]
        return
    kind: type[Op] | None = None
    members: list[int] = []
    subjects: set[str] = set()
    for position, op in enumerate(batch):
        about = _subjects(op)
        if type(op) is not kind or about is None or not subjects.isdisjoint(about):
            if kind is not None:
                yield kind, members
            kind, members, subjects = type(op), [], set()
        members.append(position)
        subjects.update(about or ())
    if kind is not None:
        yield kind, members


def once_each(rows: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Of several attempts of one node the first that is named: a node completes once."""
    first: dict[int, int] = {}
    for index, number in rows:
        first.setdefault(index, number)
    return list(first.items())


def _subjects(op: Op) -> tuple[str, ...] | None:
    """What an op is about, or None when it always stands alone."""
    if isinstance(op, Settle):
        return (op.attempt,)
    if isinstance(op, Create):
        key = op.idempotency_key
        return (op.run_id,) if key is None else (op.run_id, f"key {op.workflow} {key}")
    if isinstance(op, Append):
        return (f"{op.attempt} {op.index}",)
    return None
