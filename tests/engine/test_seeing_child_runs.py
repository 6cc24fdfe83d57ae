"""What people see of child runs: listeners, triggers and collecting are about roots, records say where a run belongs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from stepwell import Engine
from stepwell.cli.commands import clean
from stepwell.cli.show.node import print_node
from stepwell.cli.show.progress import tally
from stepwell.core.store import Store
from stepwell.engine.following import AllFollower
from stepwell.engine.runs.records import node_detail
from stepwell.triggers.firing import EndedRuns
from stepwell.triggers.kinds import RunFinished
from stepwell.triggers.state import TriggerState
from tests.engine.nightly import Import, Nightly, Outer, Stops, child_of
from tests.engine.waiting import eventually


def test_listeners_hear_of_roots_and_their_nodes() -> None:
    runs: list[str] = []
    nodes: list[str] = []
    with Engine("memory://") as engine:
        engine.on("run", lambda event: runs.append(event.run_id))
        engine.on("node", lambda event: nodes.append(event.name))
        run = engine.run(Nightly())
        alike = engine.run(Import(file="a"), run_id="alike.0123456789abcdef")  # an id like that of a child run
    assert set(runs) == {run.id, alike.id}
    assert set(nodes) == {"find", "imported", "report", "read", "load"}
    assert nodes.count("read") == 1


def test_listeners_of_another_engine_hear_of_roots() -> None:
    runs: list[str] = []
    with Engine("memory://") as engine, Engine(engine.store, runner=None) as other:
        other.on("run", lambda event: runs.append(event.run_id))
        run = engine.run(Nightly())
    assert set(runs) <= {run.id}


def test_events_of_all_runs_are_about_roots() -> None:
    with Engine("memory://") as engine:
        run = engine.run(Nightly())
        assert {event.data["id"] for event in AllFollower(engine.store, "0").next()} == {run.id}
        child = child_of(engine, run)
        *_, end = engine.events(child, until="ended")
        assert end.data == {"run": child.id, "status": "COMPLETED"}


class Connected:
    """A connection of the command line to a store that is open."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @contextmanager
    def store(self) -> Iterator[Store]:
        yield self._store


def collect(engine: Engine, **asked: Any) -> None:
    options = {"older_than": "0s", "keep": 0, "audit_log": "90d", "dry_run": False, "as_json": False, **asked}
    clean.gc(Connected(engine.store), **options)  # type: ignore[arg-type]


def test_collecting_deletes_trees_and_no_child_run_alone() -> None:
    with Engine("memory://") as engine:
        old, new = engine.run(Nightly(), run_id="old"), engine.run(Nightly(), run_id="new")
        collect(engine, keep=1)
        assert {run.id for run in engine.runs(children=True)} == {new.id, child_of(engine, new).id}
        assert [run.id for run in engine.runs(parent=old.id)] == []
        collect(engine)
        assert engine.runs(children=True) == []


def test_an_unfinished_root_keeps_its_child_runs() -> None:
    with Engine("memory://") as engine:
        paused = engine.run(Stops(), run_id="paused", check=False)
        assert paused.status == "PAUSED"
        collect(engine)
        assert child_of(engine, paused).status == "COMPLETED"


def test_the_end_of_a_child_run_fires_no_trigger() -> None:
    with Engine("memory://") as engine:
        engine.run(Nightly())
        alone = engine.run(Import(file="a"))
        state = TriggerState(1, "d", 0, 0, 0)
        ended = EndedRuns(engine.store).since("t", state, RunFinished(workflow="Import"))
        assert [run.row.id for run in ended] == [alone.id]


def test_show_names_the_run_that_performs_a_node_and_the_path_of_a_child_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    with Engine("memory://") as engine:
        run = engine.run(Nightly(), run_id="night")
        child = child_of(engine, run)
        run.show()
        (line,) = (line for line in capsys.readouterr().out.splitlines() if "imported  COMPLETED" in line)
        assert line.endswith(f"  run {child.id}")
        child.show()
        shown = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
        assert ["path", "night/imported"] in [[word.strip() for word in line] for line in shown]
        assert ["parent", "night"] in [[word.strip() for word in line] for line in shown]
        print_node(node_detail(run._stored, run.node("imported").row.index))
        assert f"run  {child.id} performs it" in capsys.readouterr().out


def test_the_live_view_names_the_run_for_which_a_node_waits() -> None:
    with Engine("memory://") as engine:
        run = engine.start(Outer(child="patient"), run_id="outer")
        eventually(lambda: run.node("inner").row.parked, "no node is parked")
        assert tally(engine, run.row).at_work == (f"inner (run {child_of(engine, run).id})",)
        run.cancel(grace_seconds=0)
