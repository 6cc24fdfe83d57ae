"""Replaying over HTTP, and the state of a run at a moment: by a worker that has the code, wherever it is."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from stepwell import Builder, Client, Engine, RunConflict, Workflow, step
from stepwell.cli.commands import replay as commands
from stepwell.cli.connect import Connection
from stepwell.core.model import INTERNAL_WORKFLOW
from stepwell.engine import internal_runs
from stepwell.errors import DefinitionError, ReplayMismatch
from tests.engine.waiting import eventually
from tests.history.test_plugin import run_pytest
from tests.server.replayed import Shopping
from tests.server.running import client, ended, running
from tests.server.test_events import events_of
from tests.servers.fleet import Fleet, Service

MODULE = "tests.server.replayed"
RUNS = "/api/v1/runs"


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/replay.db"


@pytest.fixture
def shopping(url: str) -> str:
    """A run that has completed."""
    with Engine(url, workflows=[Shopping]) as engine:
        return engine.run(Shopping(number=7)).id


@pytest.fixture
def server(url: str) -> Iterator[httpx.Client]:
    """A server that has no code and runs no bodies."""
    with running(url) as serving, client(serving) as api:
        yield api


@pytest.fixture
def work(url: str, tmp_path: Path) -> Iterator[Callable[..., Service]]:
    """Starts worker processes that have the code."""
    fleet = Fleet(url, "", tmp_path)
    yield lambda **environment: fleet.start("work", MODULE, **environment)
    fleet.close()


def replay(api: httpx.Client, run_id: str, path: str = "replay", **headers: str) -> dict[str, Any]:
    """Start a replay, as soon as a worker is there that can do it."""
    answers: list[httpx.Response] = []

    def is_accepted() -> bool:
        answers.append(api.post(f"{RUNS}/{run_id}/{path}", headers=headers))
        return answers[-1].status_code == 202

    eventually(is_accepted, show=lambda: answers[-1].text)
    assert answers[-1].headers["Location"] == f"{RUNS}/{answers[-1].json()['id']}"
    started: dict[str, Any] = answers[-1].json()
    return started


def result(api: httpx.Client, started: dict[str, Any]) -> Any:
    ended(api, started["id"])
    return api.get(f"{RUNS}/{started['id']}/results").json()["result"]


def test_a_run_is_replayed_with_the_code_of_the_server_and_nothing_is_written_to_it(url: str, shopping: str) -> None:
    with running(url, worker={"workflows": [Shopping]}) as serving, client(serving) as api:
        before = api.get(f"{RUNS}/{shopping}/journal").json()
        found = result(api, replay(api, shopping))
        assert (found["run"], found["mismatch"], found["replay"]["executed"]) == (shopping, None, ["double", "half"])
        assert api.get(f"{RUNS}/{shopping}/journal").json() == before


def test_a_worker_replays_for_a_server_without_the_code_and_shows_where_its_code_differs(
    shopping: str, server: httpx.Client, work: Callable[..., Service]
) -> None:
    first = work()
    assert result(server, replay(server, shopping))["replay"]["executed"] == ["double", "half"]
    first.end()
    work(REPLAYED_FACTOR="3")
    found = result(server, replay(server, shopping))
    assert found["replay"] is None
    mismatch = found["mismatch"]
    assert (mismatch["node"], mismatch["attempt"], mismatch["effect"]) == ("double", 1, None)
    assert any("14" in line and "21" in line for line in mismatch["diff"])


def test_a_killed_worker_leaves_the_replay_to_the_next_one(
    shopping: str, server: httpx.Client, work: Callable[..., Service]
) -> None:
    first = work(REPLAYED_HANGS="1")
    started = replay(server, shopping)
    path = f"{RUNS}/{started['id']}/nodes/replay"
    eventually(lambda: server.get(path).json()["progress"], "how far it is was not reported")
    assert server.get(path).json()["progress"]["total"] == 2
    first.kill()
    work()
    assert result(server, started)["replay"]["executed"] == ["double", "half"]
    assert [each["status"] for each in server.get(f"{path}/attempts").json()] == ["LOST", "COMPLETED"]


def test_without_a_worker_that_has_the_code_the_answer_names_it_and_the_command(
    url: str, shopping: str, server: httpx.Client
) -> None:
    with Engine(url, workflows=[counted(2)]):  # a worker, but with other code
        for path, command in (("replay", f"replay {shopping}"), ("checkpoints/3/state", f"checkpoints {shopping} 3")):
            answer = server.post(f"{RUNS}/{shopping}/{path}")
            assert answer.status_code == 409
            problem = answer.json()
            assert (problem["missing"], problem["command"]) == (f"{MODULE}:Shopping", f"stepwell {command}")
            assert problem["missing"] in problem["detail"]
            assert problem["command"] in problem["detail"]
    assert server.get(RUNS, params={"workflow": INTERNAL_WORKFLOW}).json()["items"] == []


def test_the_same_request_twice_is_one_replay(url: str, shopping: str) -> None:
    with running(url, worker={"workflows": [Shopping]}) as serving, client(serving) as api:
        first, again = (replay(api, shopping, **{"Idempotency-Key": "k"})["id"] for _ in range(2))
        other = replay(api, shopping)["id"]
        assert (first == again, first == other) == (True, False)


def test_the_state_of_a_moment_is_folded_by_a_worker(
    shopping: str, server: httpx.Client, work: Callable[..., Service]
) -> None:
    seqs = [each["seq"] for each in server.get(f"{RUNS}/{shopping}/journal").json()["items"]]
    work()
    now = result(server, replay(server, shopping, f"checkpoints/{seqs[-1]}/state"))
    began = result(server, replay(server, shopping, f"checkpoints/{seqs[0]}/state"))
    assert (now["state"], began["state"]) == ({"coins": [7, 14]}, {"coins": []})
    assert (now["step"], now["run_id"]) == (seqs[-1], shopping)
    beyond = server.post(f"{RUNS}/{shopping}/checkpoints/{seqs[-1] + 1}/state")
    assert (beyond.status_code, "has no checkpoint" in beyond.text) == (422, True)


def counted(factor: int) -> type[Workflow]:
    class Counted(Workflow):
        number: int

        @step(side_effects="pure")
        def double(self) -> int:
            return self.number * factor

    return Counted


class Curious(Workflow):
    @step(side_effects="recordable")
    def ask(self) -> int:
        return time.time_ns() if ASKS else 1


ASKS = False


def test_a_replay_asks_nothing_of_the_outside(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Engine(url, workflows=[Curious]) as engine:
        run = engine.run(Curious())
    monkeypatch.setattr(f"{__name__}.ASKS", True)
    with running(url, worker={"workflows": [Curious]}) as serving, client(serving) as api:
        assert "time_ns" in result(api, replay(api, run.id))["mismatch"]["what"]


def test_internal_runs_are_shown_only_to_those_who_ask_for_them(url: str, shopping: str) -> None:
    with running(url, worker={"workflows": [Shopping]}) as serving, client(serving) as api:
        with api.stream("GET", "/api/v1/events") as stream:
            events = events_of(stream.iter_lines())
            internal = [replay(api, shopping)["id"] for _ in range(3)]
            for each in internal:
                ended(api, each)
            started = api.post("/api/v1/workflows/Shopping/runs", json={"input": {"number": 1}}).json()["id"]
            told = set()
            for kind, _, data in events:
                told |= {data["id"]} if kind == "run" else set()
                if kind == "run" and data["status"] == "COMPLETED" and data["id"] == started:
                    break
            assert not told & {*internal}
        assert [each["id"] for each in api.get(RUNS, params={"limit": 1}).json()["items"]] == [started]
        page = api.get(RUNS, params={"limit": 2}).json()
        assert [each["id"] for each in page["items"]] == [started, shopping]
        for by, counts in (("status", {"COMPLETED": 2}), ("workflow", {"Shopping": 2})):
            found = api.get(f"{RUNS}/counts", params={"by": by}).json()
            assert ({each["value"]: each["count"] for each in found["counts"]}, found["total"]) == (counts, 2)
        assert api.get(f"{RUNS}/counts", params={"by": "hour"}).json()["total"] == 2
        bulk = api.post("/api/v1/bulk/fork", json={"filter": {"status": ["COMPLETED"]}, "dry_run": True}).json()
        assert {each["run"] for each in bulk["runs"]} == {started, shopping}
        with Engine(url, runner=None) as engine:
            assert {run.id for run in engine.runs()} == {started, shopping}
        asked = api.get(RUNS, params={"workflow": INTERNAL_WORKFLOW}).json()["items"]
        assert [each["id"] for each in asked] == internal[::-1]


def test_internal_runs_are_deleted_a_day_after_their_end(
    url: str, shopping: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(url, worker={"workflows": [Shopping]}) as serving, client(serving) as api:
        old = replay(api, shopping)["id"]
        ended(api, old)
        ended(api, replay(api, shopping)["id"])
        assert api.get(f"{RUNS}/{old}").status_code == 200
        monkeypatch.setattr(internal_runs, "KEPT_SECONDS", 0)
        latest = replay(api, shopping)["id"]
        listed = api.get(RUNS, params={"workflow": INTERNAL_WORKFLOW}).json()["items"]
        assert [each["id"] for each in listed] == [latest]


def test_nobody_else_names_the_workflow_or_its_jobs(url: str, shopping: str, server: httpx.Client) -> None:
    with pytest.raises(DefinitionError, match="names that begin with @"):
        Builder(INTERNAL_WORKFLOW)
    definition = internal_runs.internal_definition(Engine(url, runner=None).get(shopping).row, "replay", "default")
    form = {
        "version": 1,
        "nodes": {
            "replay": {
                "name": "replay",
                "job": definition.graph.in_order[0].job,
                "args": {"run": shopping},
                "depends_on": [],
                "position": 0,
            }
        },
    }
    refused = server.post(RUNS, json={"graph": form, "workflow": INTERNAL_WORKFLOW})
    assert (refused.status_code, "without @" in refused.text) == (422, True)
    started = server.post(RUNS, json={"graph": form, "workflow": "mine"}).json()["id"]
    with Engine(url, workflows=[Shopping]) as engine, pytest.raises(DefinitionError, match="of Stepwell itself"):
        engine.adopt(started)


def test_a_downloaded_cassette_replays_in_a_test(url: str, shopping: str, tmp_path: Path) -> None:
    with running(url, worker={"workflows": [Shopping]}) as serving, client(serving) as api:
        answer = api.get(f"{RUNS}/{shopping}/cassette")
        assert answer.headers["content-disposition"] == f'attachment; filename="{shopping}.cassette.json"'
    with Engine(url, workflows=[Shopping], runner=None) as engine:
        assert engine.get(shopping).export(tmp_path / "exported.json").read_bytes() == answer.content
    (tmp_path / "downloaded.json").write_bytes(answer.content)
    test = "def test_it(stepwell_replay):\n    assert len(stepwell_replay('downloaded.json').executed) == 2\n"
    assert "1 passed" in run_pytest(tmp_path, test).stdout


def test_a_cassette_is_not_written_where_secrets_are_not_known(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/here.db"
    here = counted(2)  # a class inside a function, which no other process can import
    with Engine(url, workflows=[here]) as engine:
        run = engine.run(here(number=1)).id
    with running(url) as serving, client(serving) as api:
        refused = api.get(f"{RUNS}/{run}/cassette")
        assert (refused.status_code, "would not be masked" in refused.text) == (422, True)
        found = api.get(f"{RUNS}/{run}/cassette", params={"missing_code_ok": True})
        assert json.loads(found.content)["run"]["id"] == run


def test_clients_and_the_command_line_ask_the_server_where_no_code_is_allowed(
    url: str, shopping: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def awaited(address: str) -> tuple[str, ...]:
        async with Client(address) as api:
            return (await api.replay(await api.get(shopping))).executed

    with running(url, worker={"workflows": [Shopping]}) as serving, Client(serving.url) as api:
        with pytest.raises(DefinitionError):
            api.get(shopping).replay()  # with the code here, and none is allowed
        assert api.replay(shopping).executed == ("double", "half")
        assert asyncio.run(awaited(serving.url)) == ("double", "half")
        connection = Connection(None, server=serving.url)
        commands.replay(connection, shopping, as_json=True)
        assert json.loads(capsys.readouterr().out)["executed"] == ["double", "half"]
        commands.export(connection, shopping, str(tmp_path / "shopping.json"), missing_code_ok=False)
        connection.client(serving.url).close()
        assert api.export(shopping, tmp_path / "again.json").read_bytes() == (tmp_path / "shopping.json").read_bytes()


def test_a_client_raises_what_differs_or_that_nobody_has_the_code(tmp_path: Path) -> None:
    url, before = f"sqlite:///{tmp_path}/differs.db", counted(2)
    with Engine(url, workflows=[before]) as engine:
        run = engine.run(before(number=7)).id
    with running(url) as serving, Client(serving.url) as api:
        with pytest.raises(RunConflict, match=f"`stepwell replay {run}`"):
            api.replay(run)
        with Engine(url, workflows=[counted(3)]), pytest.raises(ReplayMismatch) as caught:
            api.replay(run)
        assert (caught.value.node, caught.value.run_id) == ("double", run)
