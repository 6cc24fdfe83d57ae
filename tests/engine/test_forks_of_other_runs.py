"""A fork has what it shares for itself: a run that gets the id of its origin later is another run to it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stepwell import Context, Engine, Run, Workflow, step
from stepwell.base.ids import RunId
from stepwell.core.model import Create, Delete, Op, Receipt, Share
from stepwell.core.store.memory import MemoryStore
from stepwell.engine.procedures.forking import fork_arguments
from stepwell.engine.reports.replay import replay_cassette
from stepwell.errors import RunConflict
from stepwell.history.replay.loading import load_cassette
from tests.engine.conftest import OpenEngine


class Sum(Workflow):
    x: int = 1

    @step(side_effects="recordable")
    def a(self, ctx: Context) -> int:
        return ctx.effect("double", lambda x: 2 * x, self.x) // 2

    @step(side_effects="pure")
    def b(self, a: int) -> int:
        return a + 1


def reused(engine: Engine) -> tuple[Run, Run]:
    """A fork, and a run that got the id of its origin after that was deleted."""
    origin = engine.run(Sum(x=1), run_id="origin")
    fork = origin.fork("b", run_id="fork").wait(60).check()
    assert fork.replay().executed == ("a", "b")
    origin.delete()
    return fork, engine.run(Sum(x=100), run_id="origin")


def test_a_fork_is_replayed_without_a_run_that_has_the_id_of_its_origin(open_engine: OpenEngine) -> None:
    fork, _ = reused(open_engine())
    report = fork.replay()
    assert report.executed == ("b",)
    assert report.stubbed == {"a": "shared with a run that was deleted"}


def test_a_fork_exports_its_own_data(open_engine: OpenEngine, tmp_path: Path) -> None:
    fork, _ = reused(open_engine())
    file = fork.export(tmp_path / "after.json")
    a, b = json.loads(file.read_text())["nodes"]
    assert (a["output"], b["output"]) == (fork.output("a"), fork.output("b")) == (1, 2)
    assert "run" not in a
    assert replay_cassette(load_cassette(file), jobs=["tests"]) == fork.replay()._replace(
        seconds=pytest.approx(0, abs=60)
    )


def test_a_run_has_the_forks_that_were_made_from_it_and_no_others(open_engine: OpenEngine) -> None:
    fork, other = reused(open_engine())
    assert other.forks() == []
    own = other.fork()
    assert [each.id for each in other.forks()] == [own.id]
    assert str(fork.origin).startswith("origin at "), "where it came from stays as it was"


def test_a_fork_of_a_fork_whose_origin_is_gone_is_no_strangers_either(open_engine: OpenEngine) -> None:
    fork, _ = reused(open_engine())
    again = fork.fork().wait(60).check()
    assert again.replay().executed == ("b",)
    assert again.output("a") == 1


def test_the_same_fork_of_another_run_is_not_the_same_fork(open_engine: OpenEngine) -> None:
    engine = open_engine()
    origin = engine.run(Sum(), run_id="origin")
    origin.fork("b", run_id="fork").wait(60)
    origin.delete()
    other = engine.run(Sum(), run_id="origin")
    with pytest.raises(RunConflict, match="run fork exists already: forked from another run origin, which was deleted"):
        other.fork("b", run_id="fork")


def test_what_a_fork_shares_is_replayed_from_its_own_rows(open_engine: OpenEngine, tmp_path: Path) -> None:
    """Its origin is asked only how the node was done: as which run, with which input, at which attempt."""
    engine = open_engine()
    origin = engine.run(Sum(x=7), run_id="origin")
    fork = origin.fork("b", input={"x": 8}, run_id="fork").wait(60).check()
    node = json.loads(fork.export(tmp_path / "fork.json").read_text())["nodes"][0]
    assert node["run"] == {"id": "origin", "input": {"x": 7}}
    assert [effect["response"] for effect in node["effects"]] == [14]
    assert fork.replay().effects == 1


def test_a_fork_that_is_to_begin_does_not_begin_with_what_a_stranger_did(open_engine: OpenEngine) -> None:
    """Its maker died after the first commit, and until somebody found it another run had got the id of its origin."""
    engine = open_engine(workflows=[Sum])
    origin = engine.run(Sum(x=1), run_id="origin")
    row, name = origin.row, RunId("fork")
    place = fork_arguments(row, row.seq, origin._index_of("b"))
    origin.delete()
    engine.run(Sum(x=100), run_id="origin")
    engine.store.commit([Create(name, row.workflow, row.target, row.digest, row.input, row.seed, fork=place)])
    fork = engine.adopt(name).wait(60)
    assert (fork.status, fork.row.reason, fork.outputs) == ("CANCELLED", "origin_deleted", {})
    assert fork.audit() == []


class Swapping(MemoryStore):
    """Another process deletes the origin just before a fork shares, and somebody starts a run with its id."""

    victim: RunId | None = None
    other: RunId | None = None

    def commit(self, batch: list[Op]) -> list[Receipt]:  # type: ignore[override]
        if self.victim is not None and any(isinstance(op, Share) for op in batch):
            runs = self._state.runs
            super().commit([Delete(self.victim)])
            assert self.other is not None
            runs[self.victim] = runs.pop(self.other)
            runs[self.victim].created = runs[self.victim].created._replace(run_id=self.victim)
            self.victim = None
        return super().commit(batch)


def test_a_stranger_that_comes_while_a_fork_shares_is_found_out() -> None:
    store = Swapping()
    with Engine(store) as engine:
        origin = engine.run(Sum(x=1), run_id="origin")
        engine.run(Sum(x=100), run_id="other")
        store.victim, store.other = origin.id, RunId("other")
        with pytest.raises(RunConflict, match="run fork could not begin: the run it is a fork of was deleted"):
            origin.fork("b", run_id="fork")
        assert engine.get("fork").status == "CANCELLED"
