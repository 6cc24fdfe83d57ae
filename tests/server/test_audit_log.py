"""Who did it: each change that somebody asked for is in the audit log, with the token or trigger, from where and why."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from stepwell import Client, Document, Engine, Pipeline, Trigger, Workflow, step
from stepwell.base.clock import SECOND
from stepwell.core.model import RUN_VERBS, HeldGate
from stepwell.core.store import reader
from stepwell.engine.procedures.gates import ask, enact, finish
from stepwell.engine.procedures.procedure import carry_out, perform
from stepwell.errors import InputError, NotAllowed, RunConflict
from stepwell.history.audit_log import Actor, AuditFilter, acting_as, noted, prune, read_page
from stepwell.pipeline.noting import note_request
from stepwell.server.access.tokens import create_token, revoke_token
from stepwell.server.serving import Serving
from stepwell.triggers.firing import Firing
from tests.engine.waiting import eventually
from tests.pipeline.blog import write
from tests.server.running import ADD, client, running

API = "/api/v1"
WHY = "wrong price – see №7"


class Order(Workflow):
    order_id: int

    @step
    def check(self) -> int:
        return self.order_id

    @step
    def ship(self) -> int:
        return self.order_id


starters: list[Engine] = []


class Starts(Workflow):
    @step
    async def on_the_loop(self) -> str:
        return starters[0].start(Order(order_id=1)).id

    @step
    def in_a_thread(self) -> str:
        return starters[0].start(Order(order_id=2)).id


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/log.db"


@pytest.fixture
def server(url: str) -> Iterator[Serving]:
    """A server that runs no bodies: runs of it stay as they are."""
    with running(url) as serving:
        yield serving


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    with Engine(url, runner=None) as engine:
        yield engine


@pytest.fixture
def token(server: Serving) -> str:
    return create_token(server.service.store, ["admin"], name="alice")[0]


def log_of(api: httpx.Client, path: str = "audit-log", **query: Any) -> list[dict[str, Any]]:
    answer = api.get(f"{API}/{path}", params=query)
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def test_every_verb_is_in_the_log_with_who_asked_from_where_and_why(
    server: Serving, token: str, engine: Engine
) -> None:
    engine.save(Document(ADD))
    run = engine.start(Order(order_id=7), run_id="order")
    requests: list[tuple[str, str, str, dict[str, Any]]] = [
        ("POST", "runs/order/pause", "pause", {}),
        ("POST", "runs/order/resume", "resume", {"accept": True}),
        ("POST", "runs/order/cancel", "cancel", {"grace_seconds": 0.5}),
        ("POST", "runs/order/retry", "retry", {}),
        ("POST", "runs/order/cancel", "cancel", {"grace_seconds": 5.0}),
        ("POST", "runs/order/nodes/check/reattempt", "reattempt", {"cascade": True}),
        ("POST", "runs/order/freeze", "freeze", {}),
        ("PUT", "runs/order/graph/frozen", "import", {}),
        ("POST", "runs/order/fork", "fork", {"at": "check", "run_id": "again", "input": {"order_id": 8}}),
        ("POST", "runs/order/cancel", "cancel", {"grace_seconds": 5.0}),
        ("DELETE", "runs/order", "delete", {}),
        ("POST", "workflows/add/runs", "start", {"input": {"a": 1}, "run_id": "added"}),
    ]
    wanted = [name for name, verb in RUN_VERBS.items() if verb.options is not None]
    assert {*wanted, "freeze", "import", "delete", "start"} == {action for _, _, action, _ in requests}
    with client(server, token) as api:
        for method, path, action, body in requests:
            if action == "import":
                frozen = api.get(f"{API}/runs/order/graph/frozen").json()
                frozen["nodes"]["ship"]["depends_on"] = []
                body = frozen
            before = len(log_of(api))
            answer = api.request(
                method, f"{API}/{path}", json=body or None, headers={"X-Stepwell-Reason": quote(f"{action}: {WHY}")}
            )
            assert answer.is_success, (path, answer.text)
            entries = log_of(api)
            assert len(entries) == before + 1, action
            newest = entries[0]
            assert (newest["who"], newest["via"], newest["action"]) == ("alice", "http", action)
            assert newest["token"] == token.split("_")[1]
            assert newest["reason"] == f"{action}: {WHY}"
            assert newest["kind"] == "run"
            assert newest["at"].endswith("Z")
        options = {entry["action"]: entry["options"] for entry in reversed(log_of(api))}
        assert options["fork"]["input"] == ["order_id"], "what is changed, and not into what"
        assert options["reattempt"] == {"node": options["fork"]["node"], "cascade": True}
        assert options["resume"] == {"accept": True}
        assert options["cancel"] == {"grace_seconds": 5.0}
        assert options["fork"]["of"] == "order"
        assert options["start"] == {"workflow": "add"}
        of_run = log_of(api, "runs/order/audit-log")
        assert [entry["action"] for entry in reversed(of_run)] == [
            action for _, path, action, _ in requests if "order" in path and action != "fork"
        ], "also of a run that was deleted"
        assert [entry["action"] for entry in log_of(api, "runs/again/audit-log")] == ["fork"]
        assert log_of(api, run="order") == of_run
    assert run.id == "order"


def test_requests_to_pipelines_are_in_the_log(tmp_path: Path, url: str) -> None:
    pipeline = Pipeline("letters", root=tmp_path / "root")

    @pipeline.stage(input="in/{x}.txt", output="out/{x}.txt", version="1")
    def copy(text: str) -> str:
        if text == "bad":
            raise ValueError("bad")
        return text

    for name in ("a", "b", "bad"):
        write(tmp_path / "root", f"in/{name}.txt", name)
    path = f"{API}/pipelines/letters"
    with running(url, worker={}, pipelines=[pipeline]) as serving, client(serving) as api:

        def ask(verb: str, **body: Any) -> list[str]:
            answer = api.post(f"{path}/{verb}", json=body, headers={"X-Stepwell-Reason": f"to {verb}"})
            assert answer.is_success, answer.text
            changed: list[str] = answer.json().get("changed", [])
            return changed

        assert api.post(f"{path}/scan", json={"dry_run": True}).is_success
        ask("scan", force=True)
        eventually(lambda: not api.get(f"{path}/status").json()["scan"]["running"])
        assert ask("invalidate", targets=["out/a.txt", "out/b.txt"], stage="copy") == ["out/a.txt", "out/b.txt"]
        assert ask("accept", targets=["out/a.txt"]) == ["out/a.txt"]
        assert ask("accept", targets=["out/a.txt"]) == [], (
            "it is as it should be: nothing changes, and nothing is noted"
        )
        assert len(ask("retry")) == 1
        (tmp_path / "root/in/b.txt").unlink()
        assert ask("clean", dry_run=True) == ["out/b.txt"]
        assert ask("clean") == ["out/b.txt"]
        assert api.post(f"{path}/accept", json={"targets": ["out/nowhere.txt"]}).status_code == 422
        entries = [entry for entry in log_of(api) if entry["kind"] == "pipeline"]
        assert [(entry["action"], entry["options"]) for entry in reversed(entries)] == [
            ("scan", {"force": True}),
            ("invalidate", {"targets": ["out/a.txt", "out/b.txt"], "changed": 2, "stage": "copy"}),
            ("accept", {"targets": ["out/a.txt"], "changed": 1}),
            ("retry", {"changed": 1}),
            ("clean", {"changed": 1}),
        ]
        assert {(entry["target"], entry["via"], entry["who"]) for entry in entries} == {("letters", "http", "loopback")}
        assert [entry["reason"] for entry in entries] == [f"to {entry['action']}" for entry in entries]


def test_of_very_many_targets_the_first_are_noted(engine: Engine) -> None:
    with acting_as(Actor("bob", "cli")):
        note_request(engine.store, "letters", "accept", [f"out/{number}" for number in range(10_000)], changed=10_000)
    (entry,) = engine.audit_log()
    assert entry.options["targets"][-2:] == ["out/19", "and 9,980 more"]
    assert entry.options["changed"] == 10_000


def test_the_log_says_from_where(server: Serving, token: str, engine: Engine) -> None:
    engine.save(Document(ADD))
    with client(server) as browser:
        opened = browser.post(f"{API}/session", headers={"Authorization": f"Bearer {token}"})
        assert opened.is_success, opened.text
        page = {"Origin": server.url, "X-Stepwell-From": "ui"}
        assert browser.post(f"{API}/workflows/add/runs", json={"input": {"a": 1}}, headers=page).status_code == 201
        (entry,) = log_of(browser)
        assert (entry["who"], entry["via"], entry["action"], entry["reason"]) == ("alice", "ui", "start", None)
    with Client(server.url, token) as remote:
        run = remote.start("add", input={"a": 2})
        run.cancel(reason=WHY)
        cancel, start = remote.audit_log(run)
        assert (start.who, start.via, start.action, start.reason) == ("alice", "python", "start", None)
        assert (cancel.who, cancel.via, cancel.action, cancel.reason) == ("alice", "python", "cancel", WHY)
        remote.save(Document({**ADD, "name": "more"}))
        assert [(e.action, e.kind, e.target) for e in remote.audit_log(limit=1)] == [("save", "workflow", "more")]
        assert [entry.id for entry in remote.audit_log()] == [entry.id for entry in engine.audit_log()]
        assert remote.audit_log() == engine.audit_log()


def test_a_start_by_a_trigger_names_it(engine: Engine) -> None:
    engine.save(Document(ADD))
    engine.triggers.add(Trigger("nightly", "add", cron="30 2 * * *", timezone="UTC", input={"a": 1}))
    assert engine.audit_log() == [], "a program may start what it wants"
    later = engine.store.now() + 36 * 3_600 * SECOND
    Firing(engine.store, engine.triggers.start_run, lambda: later).fire_due()
    (run,) = engine.runs()
    (entry,) = engine.audit_log()
    assert (entry.who, entry.via, entry.action, entry.target) == ("nightly", "trigger", "start", run.id)
    with acting_as(Actor("bob", "cli")):
        fired = engine.triggers.fire("nightly")
    assert [(entry.who, entry.via) for entry in engine.audit_log(fired)] == [("bob", "cli")]


def test_a_program_that_starts_runs_leaves_nothing_and_one_that_steers_them_does(engine: Engine) -> None:
    run = engine.start(Order(order_id=7))
    assert engine.audit_log() == []
    run.pause()
    run.resume(reason="checked")
    resume, pause = engine.audit_log(run)
    assert (pause.via, pause.action, pause.reason) == ("python", "pause", None)
    assert (resume.via, resume.action, resume.reason) == ("python", "resume", "checked")
    assert "@" in pause.who
    with acting_as(Actor("alice", "python"), "by request"):
        other = engine.start(Order(order_id=8))
    assert [(entry.who, entry.reason) for entry in engine.audit_log(other)] == [("alice", "by request")]


def test_bodies_act_for_nobody_whoever_had_their_run_begin(url: str, engine: Engine) -> None:
    starters[:] = [engine]
    with Engine(url) as worker, acting_as(Actor("alice", "cli")):
        run = worker.run(Starts())
    assert [(entry.action, entry.target) for entry in engine.audit_log()] == [("start", run.id)]
    assert len(engine.runs(workflow="Order")) == 2


def test_what_is_asked_for_twice_is_there_once(server: Serving, token: str, engine: Engine) -> None:
    engine.save(Document(ADD))
    body = {"input": {"a": 1}, "run_id": "one"}
    with client(server, token) as api:
        for _ in range(2):
            assert api.post(f"{API}/workflows/add/runs", json=body).is_success
            assert api.post(f"{API}/runs/one/cancel").is_success
            assert api.post(f"{API}/workflows", json=ADD).is_success
            assert api.post(f"{API}/workflows/add/activate", json={"version": 1}).is_success
        assert [entry["action"] for entry in log_of(api, "runs/one/audit-log")] == ["cancel", "start"]
        assert api.delete(f"{API}/runs/one").is_success
        assert api.delete(f"{API}/runs/one").status_code == 404
        assert [entry["action"] for entry in log_of(api, run="one")] == ["delete", "cancel", "start"]
        assert "save" not in {entry["action"] for entry in log_of(api)}, "this content was stored before"


def test_a_request_that_is_refused_leaves_nothing(url: str, engine: Engine) -> None:
    with Engine(url) as worker:
        worker.run(Order(order_id=7), run_id="done")
    run = engine.get("done")
    for ask_for in (run.cancel, run.pause, run.retry, lambda: run.reattempt("check")):
        with pytest.raises(RunConflict):
            ask_for()
    run.fork("ship", dry_run=True, reason="only looking")
    assert engine.audit_log() == []
    for reason in ("x" * 1_001, "two\nlines", 7):
        with pytest.raises(InputError, match="reason="):
            run.delete(reason=reason)  # type: ignore[arg-type]
    assert engine.get("done").status == "COMPLETED"


@pytest.mark.parametrize("committed", [False, True])
def test_a_process_that_dies_leaves_both_or_neither(engine: Engine, committed: bool) -> None:
    store, run = engine.store, engine.start(Order(order_id=7))
    gate = ask(run.id, "cancel", grace=0)
    with acting_as(Actor("alice", "cli")):
        procedure = enact(gate, noted("cancel", "run", run.id))
    first = next(procedure)
    if committed:  # and it dies before the rows are written
        perform(store, first)
    procedure.close()
    assert (reader.require_run(store, run.id).purpose == "cancel") is committed
    assert [entry.who for entry in engine.audit_log(run)] == (["alice"] if committed else [])
    if committed:  # whoever finishes it does not ask for it
        carry_out(store, finish(HeldGate(run.id, "cancel", gate.arguments)))
        assert len(engine.audit_log(run)) == 1


def test_what_a_plan_gives_up_is_withdrawn(engine: Engine) -> None:
    run = engine.start(Order(order_id=7))
    gate = ask(run.id, "pause", judged="another input")
    with acting_as(Actor("alice", "cli")):
        procedure = enact(gate, noted("pause", "run", run.id))
    with pytest.raises(RunConflict, match="its input was changed"):
        carry_out(engine.store, procedure)
    assert engine.audit_log() == []


def test_who_may_see_the_log(server: Serving, token: str, engine: Engine) -> None:
    run = engine.start(Order(order_id=7))
    run.pause()
    text, _ = create_token(server.service.store, ["author"])
    with client(server, text) as api:
        assert api.get(f"{API}/audit-log").status_code == 403
        assert api.get(f"{API}/audit-log", params={"run": run.id}).status_code == 403
        assert [entry["action"] for entry in log_of(api, f"runs/{run.id}/audit-log")] == ["pause"]
        assert log_of(api, "runs/another/audit-log") == []
    with Client(server.url, text) as remote:
        assert [entry.action for entry in remote.audit_log(run)] == ["pause"]
        with pytest.raises(NotAllowed):
            remote.audit_log()


def test_the_log_is_filtered_and_paged(server: Serving, token: str, engine: Engine) -> None:
    for number in range(6):
        run = engine.start(Order(order_id=number), run_id=f"run-{number}")
        with acting_as(Actor("alice" if number % 2 else "bob", "http", token=f"t{number}")):
            run.pause()
            run.resume()
    with client(server, token) as api:
        whole = log_of(api)
        assert len(whole) == 12
        assert whole == sorted(whole, key=lambda entry: str(entry["at"]), reverse=True)
        seen: list[dict[str, Any]] = []
        cursor: str | None = None
        while True:
            query = {"who": "alice", "action": "resume", "limit": 5, **({"cursor": cursor} if cursor else {})}
            page = api.get(f"{API}/audit-log", params=query).json()
            seen += page["items"]
            cursor = page["next"]
            if cursor is None:
                break
        assert [entry["target"] for entry in seen] == ["run-5", "run-3", "run-1"]
        assert len(log_of(api, who="t4")) == 2, "by the id of a token, too"
        assert log_of(api, since=whole[3]["at"], limit=1_000)[-1]["target"] == whole[3]["target"]
        assert log_of(api, since="2200-01-01T00:00:00Z") == []
        assert api.get(f"{API}/audit-log", params={"since": "yesterday"}).status_code == 422
        assert api.get(f"{API}/audit-log", params={"cursor": "rubbish"}).status_code == 400
        assert log_of(api, run="half \ud83d".encode("utf-8", "replace").decode()) == []
        too_long = api.post(f"{API}/runs/run-1/pause", headers={"X-Stepwell-Reason": "x" * 2_000})
        assert too_long.status_code == 422
        assert len(log_of(api)) == 12
    assert len(engine.audit_log(since=timedelta(hours=1))) == 12
    assert engine.audit_log(since=timedelta(seconds=-60)) == []
    for wrong in ({"limit": 0}, {"who": 7}, {"action": b"cancel"}, {"run": 7}, {"since": "yesterday"}):
        with pytest.raises(InputError, match=f"{next(iter(wrong))}="):
            engine.audit_log(**wrong)  # type: ignore[arg-type]


def test_definitions_triggers_and_tokens_are_in_the_log(server: Serving, token: str) -> None:
    nightly = {"name": "nightly", "workflow": "add", "cron": "30 2 * * *", "timezone": "UTC", "input": {"a": 1}}
    with client(server, token) as api:
        assert api.post(f"{API}/workflows", json=ADD).is_success
        assert api.post(f"{API}/workflows/add/activate", json={"version": 1}).is_success
        for _ in range(2):  # the second changes nothing
            assert api.post(f"{API}/triggers", json=nightly).is_success
            assert api.post(f"{API}/triggers/nightly/pause").is_success
        assert api.post(f"{API}/triggers/nightly/resume").is_success
        assert api.delete(f"{API}/triggers/nightly").is_success
        entries = [(entry["action"], entry["kind"], entry["target"]) for entry in log_of(api)]
        assert entries == [
            ("remove", "trigger", "nightly"),
            ("resume", "trigger", "nightly"),
            ("pause", "trigger", "nightly"),
            ("add", "trigger", "nightly"),
            ("activate", "workflow", "add"),
            ("save", "workflow", "add"),
        ]
        with acting_as(Actor("root@here", "cli"), "she leaves"):
            text, made = create_token(server.service.store, ["run"], name="bob")
            revoke_token(server.service.store, made.id)
        revoke, create = log_of(api)[:2]
        assert (create["action"], create["target"], create["options"]) == (
            "create",
            made.id,
            {"name": "bob", "scopes": ["run"]},
        )
        assert (revoke["action"], revoke["reason"]) == ("revoke", "she leaves")
        assert text.split("_", 2)[2] not in api.get(f"{API}/audit-log").text


def test_old_entries_are_forgotten(engine: Engine) -> None:
    run = engine.start(Order(order_id=7))
    run.pause()
    run.resume()
    second = engine.audit_log(run)[0]
    assert prune(engine.store, int(second.at * SECOND) - 3_600 * SECOND) == 0
    assert len(engine.audit_log(run)) == 2
    assert prune(engine.store, engine.store.now() + 60 * SECOND) == 2
    assert engine.audit_log(run) == engine.audit_log() == []
    assert read_page(engine.store, AuditFilter(run.id)).entries == []
