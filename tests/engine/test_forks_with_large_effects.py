"""What a fork shares it has for itself, however large: nobody's deletion takes it away, and in the end nothing is left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest

from stepwell import Context, Engine, Run, Workflow, step
from tests.engine.conftest import OpenEngine

LARGE = 20_000


def ask(question: str) -> str:
    return question[::-1]


class Report(Workflow):
    """Everything that can be large: request and response of an effect, a durable one too, output and outcome."""

    @step(side_effects="recordable")
    def gather(self, ctx: Context) -> str:
        ctx.effect("both large", ask, "b" + "." * LARGE)
        ctx.effect("small", ask, "s")
        ctx.effect("answer large", lambda: "a" + "," * LARGE)
        ctx.effect("kept at once", ask, "d" + ";" * LARGE, durable=True)
        ctx.checkpoint("gathered")
        ctx.outcome["notes"] = "n" + "-" * LARGE
        return "o" + "=" * LARGE

    @step(side_effects="recordable")
    def write(self, gather: str, ctx: Context) -> list[Any]:
        return [gather[:2], ctx.effect("both large", ask, "b" + "." * LARGE)[-1]]

    @step
    def send(self, write: list[Any]) -> list[Any]:
        return write


def shared(run: Run) -> list[Any]:
    """All that a run knows of the node that forks share, but for whose it is."""
    (attempt,) = run.node("gather").attempts
    effects = [effect._replace(node="", attempt=0) for effect in run.effects("gather")]
    assert [effect.index for effect in effects] == [0, 1, 2, 3]
    return [run.output("gather"), attempt.outcome, effects, [label.label for label in run.checkpoints()]]


@pytest.mark.parametrize("first", ["origin", "fork"])
def test_either_may_be_deleted_first(open_engine: OpenEngine, first: str) -> None:
    engine = open_engine()
    origin = engine.run(Report())
    expected = shared(origin)
    fork = origin.fork("send").wait(30).check()
    nested = fork.fork("write").wait(30).check()
    assert shared(fork) == shared(nested) == expected
    assert [run.replay().effects for run in (origin, fork, nested)] == [5, 5, 5]
    gone, *left = (origin, fork, nested) if first == "origin" else (nested, fork, origin)
    gone.delete()
    for run in left:
        assert shared(run) == expected
        assert run.audit() == []
    left[0].delete()
    assert shared(left[1]) == expected


def test_large_payloads_are_kept_once_and_go_with_the_last_that_needs_them(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"

    def kept() -> list[tuple[int, int]]:
        """Bytes of each, and how many runs have it."""
        db = apsw.Connection(str(tmp_path / "runs.db"))
        found = sorted(db.execute("SELECT length(data), count(*) FROM blob WHERE length(data) > 16384 GROUP BY hash"))
        db.close()
        return found

    with Engine(url) as engine:
        origin = engine.run(Report())
        before = kept()
        fork = origin.fork("write").wait(30).check()
        assert [size for size, _ in kept()] == [size for size, _ in before]
        assert sum(uses for _, uses in kept()) == 2 * sum(uses for _, uses in before)
        origin.delete()
        assert kept() == before
        fork.delete()
        assert kept() == []
