"""The history of a run: every transition, numbered without a gap."""

from __future__ import annotations

from typing import Any

from stepwell.base.clock import SECOND, ManualClock
from stepwell.core.model import *
from stepwell.core.store import Store, reader
from tests.conformance.ops import *


def entries(store: Store, after: int = 0) -> list[tuple[object, ...]]:
    """(kind, index, attempt, status) of each entry."""
    return [entry[2:] for entry in reader.list_journal(store, RUN, after)]


def test_the_life_of_a_run_is_told_from_its_creation_to_its_end(store: Store, clock: ManualClock) -> None:
    serve(store, graph(a="", b="a"))
    begun = clock.now()
    clock.advance(1)
    work(store)
    later = clock.now()
    assert reader.list_journal(store, RUN) == [
        JournalRow(1, begun, "created", None, None, None),
        JournalRow(2, later, "claimed", 0, 1, None),
        JournalRow(3, later, "completed", 0, 1, "COMPLETED"),
        JournalRow(4, later, "claimed", 1, 1, None),
        JournalRow(5, later, "completed", 1, 1, "COMPLETED"),
        JournalRow(6, later, "run", None, None, "COMPLETED"),
    ]


def test_retries_losses_releases_and_wakings_are_told(store: Store, clock: ManualClock) -> None:
    serve(store, graph(a=""), seconds=60)
    store.commit([retried(grant, 5) for grant in claim(store)])
    sweep_after(store, clock, 5)
    claim(store)
    clock.advance(1)
    store.commit([Renew(WORKER, 60 * SECOND, None)])
    store.commit([Renew(WORKER, 60 * SECOND, ())])
    claim(store)
    store.commit([Dismiss(WORKER)])
    assert entries(store, 1) == [
        ("claimed", 0, 1, None),
        ("failed", 0, 1, "WAITING"),
        ("woken", 0, 1, "READY"),
        ("claimed", 0, 2, None),
        ("released", 0, 2, "READY"),
        ("claimed", 0, 3, None),
        ("lost", 0, 3, "READY"),
    ]


def test_gates_rewrites_and_fences_are_told(store: Store, clock: ManualClock) -> None:
    of = serve(store, graph(a="", b="", c="b"), on_failure="finish", seconds=60)
    a, b = claim(store)
    store.commit([failed(a)])
    child = changed(node(store, of.index["c"]), NodeStatus.CANCELLED)
    enact(store, "cancel", RunStatus.CANCELLING, child, grace=SECOND, stop=True)
    sweep_after(store, clock, 1)
    assert entries(store, 3) == [
        ("failed", a.index, 1, "FAILED"),
        ("gate", None, None, "cancel"),
        ("rewrote", of.index["c"], 0, "CANCELLED"),
        ("run", None, None, "CANCELLING"),
        ("cancelled", b.index, 1, "CANCELLED"),
        ("run", None, None, "CANCELLED"),
    ]


def test_what_happens_in_one_batch_is_told_in_order(store: Store) -> None:
    start(store, fan(6))
    serve(store, fan(6), "other")
    work(store, runs=(RUN,), limit=1)
    grants = claim(store)
    store.commit([completed(grant) for grant in grants])
    grants = claim(store)
    backwards = list(reversed(grants))
    store.commit([completed(grant) for grant in backwards])
    journal = reader.list_journal(store, "other")
    assert [entry.seq for entry in journal] == list(range(1, len(journal) + 1))
    settled = [entry.index for entry in journal if entry.kind == "completed"]
    assert settled == [0, *(grant.index for grant in backwards)]
    claimed = [entry.index for entry in journal if entry.kind == "claimed"]
    assert claimed == [0, *(grant.index for grant in grants)]


def test_what_is_refused_or_repeated_is_not_told(store: Store, clock: ManualClock) -> None:
    late = claim_first(store, graph(a="", b="a"), seconds=1)
    sweep_after(store, clock, 1)
    enlist(store)
    (grant,) = claim(store)
    twice(store, [completed(late), completed(grant)])
    hold(store)
    hold(store)
    kinds = [entry.kind for entry in reader.list_journal(store, RUN)]
    assert kinds == ["created", "claimed", "lost", "claimed", "completed", "gate"]
    assert reader.require_run(store, RUN).seq == 6


def test_the_journal_is_read_page_by_page(store: Store) -> None:
    worked(store, fan(10))
    whole = tuple(reader.list_journal(store, RUN))
    assert len(whole) == 26
    assert store.read([ListJournal(RUN, limit=10), ListJournal(RUN, 10, 10), ListJournal(RUN, 20, 10)]) == [
        whole[:10],
        whole[10:20],
        whole[20:],
    ]
    assert store.read([ListJournal(RUN, after=26)]) == [()]


def test_entries_are_chosen_by_kind_and_by_node(store: Store) -> None:
    """So that the history of a run with many nodes need not be read for what became of one of them."""
    worked(store, graph(a="", b="a", c="b"))

    def chosen(**options: Any) -> list[tuple[str, int | None]]:
        return [(entry.kind, entry.index) for entry in store.read([ListJournal(RUN, **options)])[0]]

    assert chosen(kinds=("run", "created")) == [("created", None), ("run", None)]
    assert chosen(indexes=(2, 0)) == [("claimed", 0), ("completed", 0), ("claimed", 2), ("completed", 2)]
    assert chosen(kinds=("completed",), indexes=(1, 2)) == [("completed", 1), ("completed", 2)]
    assert chosen(kinds=("completed",), after=3) == [("completed", 1), ("completed", 2)]
    assert chosen(kinds=("completed",), limit=1) == [("completed", 0)]
    assert chosen(indexes=()) == chosen(kinds=("unheard of",)) == chosen(indexes=(7,)) == []
