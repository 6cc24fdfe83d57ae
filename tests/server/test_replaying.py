"""Replaying over HTTP: with the code of the server, or a sentence that says which code is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stepwell import Engine, Workflow, step
from tests.server.running import client, running


def counted(factor: int) -> type[Workflow]:
    class Counted(Workflow):
        number: int

        @step(side_effects="pure")
        def double(self) -> int:
            return self.number * factor

        @step(side_effects="pure")
        def half(self, double: int) -> float:
            return double / 2

    return Counted


def replayed(url: str, run_id: str, **options: Any) -> tuple[int, dict[str, Any]]:
    with running(url, **options) as serving, client(serving) as api:
        answer = api.post(f"/api/v1/runs/{run_id}/replay")
        return answer.status_code, answer.json()


def test_a_run_is_replayed_with_the_code_of_the_server(tmp_path: Path) -> None:
    url, today = f"sqlite:///{tmp_path}/replay.db", counted(2)
    with Engine(url, workflows=[today]) as engine:
        run = engine.run(today(number=7))
    status, told = replayed(url, run.id, worker={"workflows": [today]})
    assert status == 200
    assert (told["mismatch"], told["replay"]["executed"]) == (None, ["double", "half"])


def test_changed_code_is_shown_where_it_first_differs(tmp_path: Path) -> None:
    url, before = f"sqlite:///{tmp_path}/replay.db", counted(2)
    with Engine(url, workflows=[before]) as engine:
        run = engine.run(before(number=7))
    status, told = replayed(url, run.id, worker={"workflows": [counted(3)]})
    assert status == 200
    assert told["replay"] is None
    assert (told["mismatch"]["node"], told["mismatch"]["attempt"], told["mismatch"]["effect"]) == ("double", 1, None)
    assert any("14" in line and "21" in line for line in told["mismatch"]["diff"])


def test_a_server_without_the_code_says_so_and_where_to_replay(tmp_path: Path) -> None:
    url, today = f"sqlite:///{tmp_path}/replay.db", counted(2)
    with Engine(url, workflows=[today]) as engine:
        run = engine.run(today(number=7))
    status, told = replayed(url, run.id)
    assert status == 409
    assert "does not have the code" in told["detail"]
    assert f"stepwell replay {run.id}" in told["detail"]
