"""Handlers as nodes of runs: time limits, retries, stops, and what is missing."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stepwell import Engine, Handlers, handler
from stepwell.base.secret_refs import SecretRef
from stepwell.base.secrets import Secrets
from stepwell.define.document import Document
from stepwell.engine import NodeView
from stepwell.errors import MissingJob, MissingSecret
from stepwell.handlers import Handler
from tests.engine.waiting import eventually
from tests.handlers.servers import Asked, Server, answer


def document(*nodes: dict[str, Any], handlers: Handlers, **more: Any) -> Document:
    return Document({"name": "trial", "nodes": list(nodes), **more}, handlers=handlers)


def one(handler: str, config: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": "node", "handler": handler, "config": config, "dependencies": [], **more}


def local(*given: Handler, **more: Any) -> Handlers:
    return Handlers(given, private_networks=["127.0.0.0/8"], **more)


def statuses(node: NodeView) -> list[str]:
    return [str(attempt.status) for attempt in node.attempts]


def test_three_attempts_are_the_default_and_retry_after_is_honoured():
    with Server(lambda asked: answer(503, Retry_After="1")) as server, Engine("memory://", handlers=local()) as engine:
        run = engine.start(document(one("http_request", {"url": server.url}), handlers=engine.parts.code.handlers))
        run.wait(30)
        node = run.node("node")
        assert (str(run.status), statuses(node)) == ("FAILED", ["FAILED"] * 3)
        for before, after in itertools.pairwise(node.attempts):
            assert after.started_at - before.ended_at >= 1.0
        assert [each.outcome["http"] for each in node.attempts] == [{"status_code": 503, "retry_after": 1.0}] * 3
        assert len(server.asked) == 3


def test_other_failures_are_not_tried_again_whatever_the_node_says():
    with Server(lambda asked: answer(404, b"gone")) as server, Engine("memory://", handlers=local()) as engine:
        node = one("http_request", {"url": server.url}, retry=5)
        run = engine.start(document(node, handlers=engine.parts.code.handlers)).wait(30)
        assert statuses(run.node("node")) == ["FAILED"]
        assert run.node("node").error.message == f"GET {server.url}: status 404: gone"


def trickle(asked: Asked) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"
    for _ in range(600):
        time.sleep(0.05)
        yield b"x"


def slow_headers(asked: Asked) -> Iterator[bytes]:
    for _ in range(600):
        time.sleep(0.05)
        yield b"H"


def silent(asked: Asked) -> Iterator[bytes]:
    time.sleep(30)
    yield b""


@pytest.mark.parametrize("respond", [trickle, slow_headers, silent])
def test_an_answer_that_trickles_ends_with_the_time_of_its_node(respond):
    with Server(respond) as server, Engine("memory://", handlers=local()) as engine:
        slow = one("http_request", {"url": server.url}, timeout_seconds=0.5, retry=1)
        started = time.monotonic()
        run = engine.start(document(slow, handlers=engine.parts.code.handlers)).wait(30)
        assert time.monotonic() - started < 5
        attempt = run.node("node").attempts[0]
        assert str(attempt.status) == "TIMED_OUT"
        assert 0.45 <= attempt.ended_at - attempt.started_at < 1.5


def test_a_time_out_is_tried_again_as_network_errors_are():
    times = itertools.count()

    def respond(asked: Asked) -> Any:
        return silent(asked) if next(times) == 0 else answer(200, b"now")

    with Server(respond) as server, Engine("memory://", handlers=local()) as engine:
        slow = one("http_request", {"url": server.url}, timeout_seconds=1)
        run = engine.start(document(slow, handlers=engine.parts.code.handlers)).wait(30)
        assert statuses(run.node("node")) == ["TIMED_OUT", "COMPLETED"]


def test_a_request_under_way_is_cancelled_with_its_run():
    with Server(silent) as server, Engine("memory://", handlers=local()) as engine:
        run = engine.start(document(one("http_request", {"url": server.url}), handlers=engine.parts.code.handlers))
        eventually(lambda: bool(server.asked))
        started = time.monotonic()
        run.cancel()
        run.wait(10)
        assert str(run.status) == "CANCELLED"
        assert time.monotonic() - started < 5


def test_a_program_is_killed_when_its_node_runs_out_of_time(tmp_path: Path):
    with Engine("memory://", handlers=local(shell=["sh"])) as engine:
        script = f"echo $$ > {tmp_path}/pid; sleep 60"
        node = one("shell", {"args": ["sh", "-c", script]}, timeout_seconds=1.5)
        run = engine.start(document(node, handlers=engine.parts.code.handlers)).wait(30)
        assert statuses(run.node("node")) == ["TIMED_OUT"]
        pid = int((tmp_path / "pid").read_text())
        eventually(lambda: not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text().split()[2])


def test_a_guarded_engine_lets_handlers_ask():
    guarded = Engine("memory://", handlers=local(shell=True), guard=True)
    with Server(lambda asked: answer(200, {"a": 1})) as server, guarded as engine:
        host = {"url": f"http://localhost:{server.port}/"}
        nodes = [one("http_request", host), one("shell", {"args": ["echo", "x"]}) | {"id": "other"}]
        run = engine.start(document(*nodes, handlers=engine.parts.code.handlers)).wait(30)
        assert str(run.status) == "COMPLETED", [node.error for node in run.nodes()]


def test_a_secret_that_is_missing_is_told_at_start():
    handlers = local(secrets=Secrets(environment={}))
    node = one("http_request", {"url": "http://127.0.0.1/", "bearer": "secret:NOWHERE"})
    with Engine("memory://", handlers=handlers) as engine:
        with pytest.raises(MissingJob, match="node 'node' cannot run here: secret:NOWHERE is not here: set"):
            engine.start(document(node, handlers=handlers))
        assert engine.runs() == []


def test_a_service_that_is_missing_is_told_at_start():
    node = one("call_external_service", {"service": "crm"})
    with (
        Engine("memory://", handlers=local()) as engine,
        pytest.raises(MissingJob, match="there is no service 'crm' here"),
    ):
        engine.start(document(node, handlers=engine.parts.code.handlers))


def test_a_worker_without_the_secret_spends_no_attempt_and_why_names_it(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/runs.db"
    with Server(lambda asked: answer(200, b"ok")) as server:
        node = one("http_request", {"url": server.url, "bearer": "secret:LATER"})
        without, has = local(secrets=Secrets(environment={})), local(secrets={"LATER": "swordfish-20"})
        with Engine(url, handlers=without, runner=None) as engine:
            run_id = engine.start(document(node, handlers=without)).id
        with Engine(url, handlers=without) as engine:
            with pytest.raises(MissingJob, match="secret:LATER"):
                engine.adopt(run_id)
            engine.work(wait=0)
            run = engine.get(run_id)
            eventually(lambda: "secret:LATER" in str(run.why()))
            assert "the 1 worker that is alive cannot run it: secret:LATER is not here" in str(run.why("node"))
            assert run.node("node").attempts == ()
        assert server.asked == []
        with Engine(url, handlers=has) as engine:
            run = engine.adopt(run_id).wait(20)
            assert str(run.status) == "COMPLETED"
        assert server.asked[0].headers["authorization"] == "Bearer swordfish-20"


def test_a_secret_is_in_nothing_that_is_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    """Whatever the other side and the handlers do with it: outputs, errors, logs, effects, outcome, the file, the cassette."""
    secret = "swordfish-21/ä"

    @handler("leaky")
    def leaky(ctx, config):
        print("printed", config["key"])
        logging.getLogger("leaky").warning("logged %s", config["key"])
        ctx.outcome["key"] = config["key"]
        ctx.progress(1, 2, config["key"])
        ctx.effect("call", lambda: {"echo": config["key"]}, request={"key": config["key"]})
        if config["how"] == "raise":
            raise ValueError(config["key"])
        return {"result": [config["key"], {config["key"]: 1}]}

    def echo(asked: Asked) -> bytes:
        told = asked.headers.get("x-key", "") + asked.target + asked.body.decode()
        return answer(200 if asked.path == "/ok" else 400, told.encode(), "text/plain")

    url = f"sqlite:///{tmp_path}/runs.db"
    handlers = local(leaky, secrets={"K": secret, "H": "swordfish-22"}, shell=["sh"])
    with Server(echo) as server, Engine(url, handlers=handlers) as engine:
        request = {
            "method": "POST",
            "headers": {"X-Key": "secret:H"},
            "query": {"k": "secret:K"},
            "json": {"k": "secret:K"},
        }
        nodes = [
            one("http_request", {"url": server.url + "/ok", **request}) | {"id": "good"},
            one("http_request", {"url": server.url + "/bad", **request}) | {"id": "bad"},
            one("leaky", {"key": "secret:K", "how": "return"}) | {"id": "returns"},
            one("leaky", {"key": "secret:K", "how": "raise"}) | {"id": "raises"},
            one("shell", {"args": ["sh", "-c", "echo $K >&2; exit 3"], "env": {"K": "secret:K"}}) | {"id": "program"},
        ]
        run = engine.start(document(*nodes, handlers=handlers, on_failure="finish")).wait(30)
        assert {node.name: str(node.status) for node in run.nodes()} == {
            "good": "COMPLETED",
            "bad": "FAILED",
            "returns": "COMPLETED",
            "raises": "FAILED",
            "program": "FAILED",
        }
        assert all("***" in str(run.node(name).error.message) for name in ("bad", "raises", "program"))
        assert run.output("returns") == {"result": ["***", {"***": 1}]}
        run.export(tmp_path / "run.cassette.json")
        shown = [str(run.why()), str(run.outputs), repr(run.effects())]
        shown += [str(line) for line in run.logs()]
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()) + "".join(shown).encode()
    for form in ("swordfish", "%2F%C3%A4", "\\u00e4"):
        assert form.encode() not in kept, form


@pytest.mark.parametrize("yielded", ["secret:DB", {"name": "DB"}])
def test_what_a_template_yields_is_never_a_secret(yielded):
    with (
        Server(lambda asked: answer(200, {"token": yielded})) as server,
        Engine("memory://", handlers=local(secrets={"DB": "swordfish-23"})) as engine,
    ):
        nodes = [
            one("http_request", {"url": server.url}) | {"id": "evil"},
            {
                "id": "victim",
                "handler": "http_request",
                "config": {"url": server.url, "method": "POST", "json": {"token": "{{ evil.result.token }}"}},
                "dependencies": ["evil"],
            },
        ]
        run = engine.start(document(*nodes, handlers=engine.parts.code.handlers), input={"x": "secret:DB"}).wait(30)
        assert str(run.status) == "COMPLETED"
        assert server.asked[-1].json() == {"token": yielded}


def test_a_worker_goes_on_when_the_secret_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("stepwell.engine.code.serving.LACKING_SECONDS", 0.05)
    url, folder = f"sqlite:///{tmp_path}/runs.db", tmp_path / "secrets"
    folder.mkdir()
    handlers = local(secrets=Secrets(folder=folder, environment={}))
    with Server(lambda asked: answer(200, b"ok")) as server:
        node = one("http_request", {"url": server.url, "bearer": "secret:LATER"})
        with Engine(url, handlers=handlers, runner=None) as engine:
            run_id = engine.start(document(node, handlers=handlers)).id
        with Engine(url, handlers=handlers) as engine:
            engine.work(wait=0)
            run = engine.get(run_id)
            eventually(lambda: "secret:LATER" in str(run.why()))
            (folder / "LATER").write_text("swordfish-24\n")
            assert str(run.wait(20).status) == "COMPLETED"
            assert len(run.node("node").attempts) == 1


def test_why_says_that_trying_again_would_not_help():
    with Server(lambda asked: answer(404)) as server, Engine("memory://", handlers=local()) as engine:
        run = engine.start(
            document(one("http_request", {"url": server.url}, retry=5), handlers=engine.parts.code.handlers)
        )
        run.wait(20)
        told = str(run.why("node"))
        assert "it is retried only after other errors" in told
        assert "status 404" in told


def test_a_handler_of_ones_own_gets_no_secret_by_naming_a_service():
    @handler("mine")
    def mine(ctx, config):
        return {"result": "called"}

    services = {"crm": {"base_url": "https://crm.test", "bearer": "secret:T"}}
    handlers = local(mine, services=services, secrets={"T": "swordfish-44"})
    with Engine("memory://", handlers=handlers) as engine, pytest.raises(MissingJob, match="it is for crm"):
        engine.start(document(one("mine", {"service": "crm", "key": "secret:T"}), handlers=handlers))
    with pytest.raises(MissingSecret):
        handlers.call(mine, None, {"service": "crm", "key": SecretRef("T")})


def test_a_service_that_a_template_names_is_known_when_it_runs():
    with Server(lambda asked: answer()) as server:
        services = {"crm": {"base_url": server.url, "bearer": "secret:T"}, "mail": {"base_url": server.url}}
        handlers = local(services=services, secrets={"T": "swordfish-45"})
        config = {"service": "{{ input.service }}", "headers": {"X-Key": "secret:T"}}
        with Engine("memory://", handlers=handlers) as engine:
            node = document(one("call_external_service", config), handlers=handlers)
            statuses = {}
            for service in ("crm", "mail", "*", "nowhere"):
                run = engine.start(node, input={"service": service}).wait(20)
                statuses[service] = str(run.status), len(run.node("node").attempts)
        assert statuses == {
            "crm": ("COMPLETED", 1),
            "mail": ("FAILED", 1),
            "*": ("FAILED", 1),
            "nowhere": ("FAILED", 1),
        }
        assert len(server.asked) == 1


def test_a_document_cannot_send_the_credential_of_a_service_elsewhere():
    with Server(lambda asked: answer()) as server:
        services = {"crm": {"base_url": server.url, "bearer": "secret:T"}}
        handlers = local(services=services, secrets={"T": "swordfish-43"})
        elsewhere = one("http_request", {"url": server.url, "bearer": "secret:T"})
        with Engine("memory://", handlers=handlers) as engine:
            with pytest.raises(MissingJob, match="secret:T may not be used for no service: it is for crm"):
                engine.start(document(elsewhere, handlers=handlers))
            run = engine.start(document(one("call_external_service", {"service": "crm"}), handlers=handlers)).wait(20)
            assert str(run.status) == "COMPLETED"
        assert len(server.asked) == 1
