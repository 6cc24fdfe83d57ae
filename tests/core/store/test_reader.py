"""What is read in several pages is whole, and as it stood at one moment."""

from __future__ import annotations

from typing import Any

import pytest

from stepwell.core.model import ListJournal, ListRuns, Query, RunPage
from stepwell.core.store import reader
from stepwell.core.store.memory import MemoryStore
from tests.conformance.ops import RUN, claim, completed, enlist, graph, start, work


@pytest.mark.parametrize("limit", [1, 2, 5, 6, 7, 100])
def test_a_journal_longer_than_a_page_is_read_to_its_end(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    after, _, *rest = ListJournal.__new__.__defaults__ or ()
    monkeypatch.setattr(ListJournal.__new__, "__defaults__", (after, limit, *rest))
    store = MemoryStore()
    start(store, graph(a="", b="a", c="b"))
    enlist(store)
    while work(store):
        pass
    seq = reader.require_run(store, RUN).seq
    everything = list(range(1, seq + 1))
    assert [entry.seq for entry in reader.list_journal(store, RUN)] == everything
    assert [entry.seq for entry in reader.list_journal(store, RUN, 3)] == everything[3:]
    history = reader.get_history(store, RUN)
    assert [entry.seq for entry in history.journal] == everything
    assert history.row.seq == seq


def test_what_happens_while_a_history_is_read_is_not_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    after, _, *rest = ListJournal.__new__.__defaults__ or ()
    monkeypatch.setattr(ListJournal.__new__, "__defaults__", (after, 1, *rest))

    class Working(MemoryStore):
        def read(self, queries: Any) -> list[Any]:
            asked: list[Query] = list(queries)
            found = super().read(asked)
            if len(asked) == 3:
                self.commit([completed(grant)])
            return found

    store = Working()
    start(store, graph(a="", b="a", c="b"))
    enlist(store)
    (grant,) = claim(store)
    before = reader.require_run(store, RUN).seq
    history = reader.get_history(store, RUN)
    assert [entry.seq for entry in history.journal] == list(range(1, before + 1))
    assert reader.require_run(store, RUN).seq > before


@pytest.mark.parametrize("asked", [ListRuns(workflow="or\udc80ders"), ListRuns(prefix="a\x00")])
def test_a_store_is_not_asked_for_runs_with_names_that_none_can_have(asked: ListRuns) -> None:
    """Some could not be asked."""

    class Silent(MemoryStore):
        def read(self, queries: Any) -> list[Any]:
            raise AssertionError(queries)

    assert reader.list_runs(Silent(), asked) == RunPage((), None)
