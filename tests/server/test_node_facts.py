"""What the page of a run asks for beside its graph: progress, what a node was given, and how long it usually takes."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from stepwell import Engine, Workflow, step, task
from tests.engine.waiting import eventually
from tests.server.running import client, running

RUNS = "/api/v1/runs"
LARGE = 20_000


class Pack(Workflow):
    size: int = 3

    @step
    def pick(self) -> str:
        return "x" * self.size

    @step
    def weigh(self) -> int:
        return 7

    @task(depends_on=[pick, weigh])
    def pack(self, ctx: Any) -> str:
        ctx.progress(1, 4, "boxes")
        if self.size == 4:
            assert GO_ON.wait(60)
        if self.size == 5:
            raise ValueError("too heavy")
        return "packed"


GO_ON = threading.Event()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/facts.db"


def test_running_nodes_say_how_far_they_are(url: str) -> None:
    with running(url) as serving, client(serving) as api, Engine(url, workflows=[Pack]) as engine:
        run = engine.start(Pack(size=4))
        wanted = [{"node": "pack", "progress": {"done": 1, "total": 4, "message": "boxes", "fraction": 0.25}}]
        try:
            eventually(lambda: api.get(f"{RUNS}/{run.id}/progress").json() == wanted)
        finally:
            GO_ON.set()
        run.wait(20)
        assert api.get(f"{RUNS}/{run.id}/progress").json() == []


def test_a_node_has_what_its_parents_returned_as_its_input(url: str) -> None:
    with Engine(url, workflows=[Pack]) as engine:
        run = engine.run(Pack(size=LARGE)).id
    with running(url) as serving, client(serving) as api:
        page = api.get(f"{RUNS}/{run}/nodes/pack/inputs", params={"limit": 1}).json()
        (first,) = page["items"]
        (second,) = api.get(f"{RUNS}/{run}/nodes/pack/inputs", params={"cursor": page["next"]}).json()["items"]
        inputs = {each["name"]: each for each in (first, second)}
        assert (inputs["weigh"]["value"], inputs["weigh"]["inline"]) == (7, True)
        assert (inputs["pick"]["value"], inputs["pick"]["inline"]) == (None, False)
        assert api.get(inputs["pick"]["href"]).json() == "x" * LARGE
        assert api.get(f"{RUNS}/{run}/nodes/pick/inputs").json() == {"items": [], "next": None}


def test_usual_times_are_those_of_other_runs_that_completed(url: str) -> None:
    with Engine(url, workflows=[Pack]) as engine:
        runs = [engine.run(Pack()) for _ in range(3)]
        failed = engine.run(Pack(size=5), check=False).id
        own = sorted(run.node("weigh").seconds or 0 for run in runs)
    with running(url) as serving, client(serving) as api:
        seconds = sorted(api.get(f"{RUNS}/{run.id}").json()["seconds"] for run in runs[1:])
        usual = api.get(f"{RUNS}/{runs[0].id}/usual").json()
        assert usual == {"count": 2, "median_seconds": pytest.approx(sum(seconds) / 2), "longest_seconds": seconds[-1]}
        node = api.get(f"{RUNS}/{failed}/usual", params={"node": "weigh"}).json()
        assert node == {"count": 3, "median_seconds": own[1], "longest_seconds": own[-1]}
        assert api.get(f"{RUNS}/{failed}/usual", params={"node": "none"}).status_code == 404
