"""Making a fork."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ...base.clock import SECOND
from ...base.codec import decode
from ...base.ids import RunId
from ...core.model import Create, Created, GetRun, HeldGate, PutRecord, Refused, RunRow
from ...core.model.origin import made_from, origin_of
from ...core.store import Store, reader
from ...errors import RunBusy, RunConflict
from .forking import ORIGIN_DELETED
from .gates import GATE_LEASE, finish, load
from .procedure import Commit, Procedure, Read, carry_out

_LOADING = ("load", "fork")


def create_fork(create: Create, entries: Sequence[PutRecord] = (), *, of_all: bool = False) -> Procedure[RunId]:
    """Create a fork and share what its origin has done, unless somebody else is doing so. Repeating it gives the same run.

    `entries`: what the audit log gets of it. `of_all`: it was asked for with all that the origin has done.
    """
    receipt, *_ = yield Commit([create, *entries])
    if isinstance(receipt, Refused):
        raise RunConflict(f"run {receipt.detail} exists already, with another workflow or input", run_id=create.run_id)
    assert isinstance(receipt, Created)
    arguments = create.fork
    if receipt.existed:
        (row,) = yield Read([GetRun(receipt.run_id)])
        _check_same(row, create, of_all=of_all)
        arguments = row.fork
    if receipt.loaded < receipt.total:
        yield from load(receipt.run_id, receipt.loaded)
    assert arguments is not None
    yield from finish(HeldGate(receipt.run_id, "fork", arguments))
    return receipt.run_id


def begin_fork(store: Store, create: Create, entries: Sequence[PutRecord] = (), *, of_all: bool = False) -> RunId:
    """The same, but wait for somebody else who is doing it; if they died, finish it when their lease is over."""
    run_id = carry_out(store, create_fork(create, entries, of_all=of_all))
    deadline = time.monotonic() + GATE_LEASE / SECOND + 5
    while True:
        row = reader.require_run(store, run_id)
        if row.purpose not in _LOADING:
            break
        if time.monotonic() > deadline:
            raise RunBusy(f"run {run_id} is busy with {row.purpose!r}; try again in a moment", run_id=run_id)
        time.sleep(0.05)
        assert row.fork is not None
        carry_out(store, finish(HeldGate(run_id, row.purpose, row.fork)))
    if row.reason == ORIGIN_DELETED:
        raise RunConflict(f"run {run_id} could not begin: the run it is a fork of was deleted", run_id=run_id)
    return run_id


def _check_same(row: RunRow, create: Create, *, of_all: bool) -> None:
    wanted, found = origin_of(row._replace(fork=create.fork)), origin_of(row)
    if found is None:
        raise RunConflict(f"run {row.id} exists already and is no fork", run_id=row.id)
    assert wanted is not None
    # While the origin goes on, more may have been done by now than when the fork was first asked for.
    any_seq = of_all or wanted.before is not None
    same_place = found == (wanted._replace(seq=found.seq) if any_seq else wanted)
    if not same_place:
        raise RunConflict(
            f"run {row.id} exists already: forked from {found}, and not from where it was asked for", run_id=row.id
        )
    if not made_from(row, wanted.run_id, decode(create.fork or b"{}")["created_at"]):
        raise RunConflict(
            f"run {row.id} exists already: forked from another run {found.run_id}, which was deleted", run_id=row.id
        )
