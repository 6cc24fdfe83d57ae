"""Which ops of a batch are applied as one set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...model import Append, Batch, Create, Op, Settle

_FEW = 4


def groups(batch: Batch) -> Iterator[tuple[type[Op], list[int]]]:
    """Positions of neighbouring ops that are applied as one set.

    Neighbours of one kind form a set as long as no two of them are about the same attempt or run. Settlements of one set
    are judged against the gate as it stood before the set, so that a store may apply them all in one statement. One that
    creates a child run stands alone.
    """
    if len(batch) <= _FEW and len(set(map(type, batch))) == len(batch):  # what a chain commits, over and over
        for position, op in enumerate(batch):
            yield type(op), [position]
        return
    kind: type[Op] | None = None
    members: list[int] = []
    subjects: set[str] = set()
    for position, op in enumerate(batch):
        # One more settlement, as nearly always.
        if type(op) is Settle and kind is Settle and op.attempt not in subjects and op.child is None:
            members.append(position)
            subjects.add(op.attempt)
            continue
        about = _subjects(op)
        if type(op) is not kind or about is None or not subjects.isdisjoint(about):
            if kind is not None:
                yield kind, members
            kind, members, subjects = type(op), [], set()
        if about is None:
            yield type(op), [position]
            kind = None
            continue
        members.append(position)
        subjects.update(about)
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
        return (op.attempt,) if op.child is None else None
    if isinstance(op, Create):
        key = op.idempotency_key
        return (op.run_id,) if key is None else (op.run_id, f"key {op.workflow} {key}")
    if isinstance(op, Append):
        return (f"{op.attempt} {op.index}",)
    return None
