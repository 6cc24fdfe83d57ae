"""Graphs of real pipelines run in a legal order, and all of each completes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stepwell import Builder, Context, Engine

FOLDER = Path(__file__).parents[3] / "shared" / "realdags"
FILES = sorted(FOLDER.glob("*.json"))

ended: dict[str, set[str]] = {}


def visit(world: str, parents: list[str], ctx: Context) -> int:
    missing = [parent for parent in parents if parent not in ended[world]]
    assert not missing, f"{ctx.node_name} began before {missing} ended"
    ended[world].add(ctx.node_name)
    return len(parents)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> object:
    with Engine(f"sqlite:///{tmp_path_factory.mktemp('real')}/real.db") as engine:
        yield engine


@pytest.mark.skipif(not FILES, reason=f"there are no graphs in {FOLDER}")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_real_graph_runs_in_a_legal_order(file: Path, engine: Engine) -> None:
    tasks = {task["id"]: task["parents"] for task in json.loads(file.read_text())["tasks"]}
    world = file.stem
    ended[world] = set()
    w = Builder(world)
    ids: dict[str, str] = {}
    while len(ids) < len(tasks):  # files need not list parents first
        for name, parents in tasks.items():
            if name not in ids and all(parent in ids for parent in parents):
                depends_on = [ids[parent] for parent in parents] or None
                ids[name] = w.node(name, job=visit, args={"world": world, "parents": parents}, depends_on=depends_on)
    run = engine.run(w, wait=60)
    assert ended.pop(world) == set(tasks)
    assert run.outputs == {ids[name]: len(parents) for name, parents in tasks.items()}
