"""One node of a run is read alone, however large the run is; its ancestors only for an ancestry hash."""

from __future__ import annotations

from typing import Any

import pytest

from stepwell import Builder, Engine
from tests.engine import jobs


def chain(length: int) -> Builder:
    w = Builder("chain")
    for number in range(length):
        w.node(f"s{number}", job=jobs.nothing)
    return w


def count_rows(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each query is answered with from now on."""
    counts: list[int] = []
    read = engine.store.read

    def counted(queries: Any) -> list[Any]:
        answers = read(queries)
        counts.extend(len(rows) for rows in answers if isinstance(rows, tuple | list) and not hasattr(rows, "_fields"))
        return answers

    monkeypatch.setattr(engine.store, "read", counted)
    return counts


@pytest.mark.parametrize("length", [20, 200])
def test_reading_a_node_reads_no_other_however_many_ancestors_there_are(
    length: int, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = engine.run(chain(length))
    counts = count_rows(engine, monkeypatch)
    node = run.node(f"s{length - 1}")
    assert (node.status, len(node.attempts), node.attempts[0].number) == ("COMPLETED", 1, 1)
    assert len(counts) <= 5
    assert sum(counts) <= 3


def test_ancestors_are_read_once_when_an_ancestry_hash_is_asked_for(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = engine.run(chain(20))
    run.reattempt("s19").wait(30).check()
    counts = count_rows(engine, monkeypatch)
    first, second = run.node("s19").attempts
    assert sum(counts) <= 4
    assert first.ancestry != second.ancestry
    assert 20 <= max(counts) <= 60
    counts.clear()
    assert (first.ancestry, second.ancestry) == tuple(again.ancestry for again in (first, second))
    assert counts == []


def test_all_nodes_read_their_ancestors_together(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    run = engine.run(chain(50))
    counts = count_rows(engine, monkeypatch)
    hashes = {node.attempts[0].ancestry for node in run.nodes()}
    assert len(hashes) == 50
    assert None not in hashes
    assert sum(counts) <= 3 * 50
