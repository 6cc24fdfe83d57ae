"""What waits for a worker that is not there: `GET /workers/unserved`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx

from stepwell import Engine, Workflow, step
from tests.engine.waiting import eventually
from tests.server.running import client, running


class Shipping(Workflow):
    @step
    def pack(self) -> int:
        return 1

    @step(queue="vans")
    def drive(self) -> int:
        return 2


def items_of(api: httpx.Client) -> list[dict[str, Any]]:
    report = api.get("/api/v1/workers/unserved").json()
    assert report["complete"]
    items: list[dict[str, Any]] = report["items"]
    return items


def test_without_a_worker_nothing_is_served(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/idle.db"
    with running(url) as serving, client(serving) as api, Engine(url, workflows=[Shipping], runner=None) as engine:
        run = engine.start(Shipping())
        engine.start(Shipping()).cancel()
        (item,) = items_of(api)
        assert (item["workflow"], item["queue"], item["run"]) == ("Shipping", None, run.id)
        assert (item["kind"], item["because"], item["module"]) == ("no_worker", "no worker is alive", __name__)
        run.pause()
        assert items_of(api) == [], "it waits for a person, not for a worker"


def test_a_queue_with_waiting_nodes_that_no_live_worker_takes_from(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/busy.db"
    worker = {"workflows": [Shipping], "queues": ["default"]}
    with (
        running(url, worker=worker) as serving,
        client(serving) as api,
        Engine(url, workflows=[Shipping], runner=None) as engine,
    ):
        assert items_of(api) == []
        run = engine.start(Shipping())
        eventually(lambda: run.node("drive").status == "READY")
        (item,) = items_of(api)
        assert (item["workflow"], item["queue"], item["run"]) == ("Shipping", "vans", run.id)
        assert item["because"] == "no worker serves its queue 'vans': the 1 worker that is alive takes only 'default'"
        with Engine(url, workflows=[Shipping]):
            assert items_of(api) == []
