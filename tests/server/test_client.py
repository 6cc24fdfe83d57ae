"""`Client`: a program moves from an engine to a server by one line."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import httpx
import pytest

from stepwell import (
    Builder,
    Client,
    Document,
    Engine,
    InputError,
    Run,
    RunCancelled,
    RunConflict,
    RunFailed,
    RunNotFound,
    RunStatus,
    RunStillActive,
    Trigger,
    Workflow,
    step,
)
from stepwell.base.clock import SECOND
from stepwell.cli.commands import run as commands
from stepwell.cli.connect import Connection
from stepwell.client import events as client_events
from stepwell.errors import NotAllowed, ServerError, StoreError
from stepwell.server.access.tokens import create_token
from stepwell.server.api import events as server_events
from stepwell.server.serving import Serving
from tests.server.gift import SERVED, Gift, left_by_the_class_before
from tests.server.running import ADD, running


class Order(Workflow):
    order_id: int
    express: bool = False

    @step
    def validate(self) -> int:
        print("validating", self.order_id)
        return self.order_id

    @step
    def charge(self, validate: int) -> dict[str, Any]:
        if validate < 0:
            raise ValueError("no such order")
        return {"charged": validate, "express": self.express}


class Dated(Workflow):
    day: date

    @step
    def print(self) -> list[date]:
        return [self.day]


def slow() -> str:
    time.sleep(0.3)
    return "done"


def nap() -> None:
    time.sleep(0.05)


def wait_for_stop(ctx: Any) -> None:
    while True:
        ctx.check()
        time.sleep(0.01)


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    url = f"sqlite:///{tmp_path_factory.mktemp('client')}/client.db"
    with running(url, worker={"workflows": [Order, Dated]}, jobs=["tests.server.test_client"]) as found:
        yield found


@pytest.fixture(params=["engine", "client"])
def engine(request: pytest.FixtureRequest, serving: Serving, tmp_path: Path) -> Iterator[Any]:
    """The same program with an engine and with a client: that is the one line."""
    made = (
        Client(serving.url)
        if request.param == "client"
        else Engine(f"sqlite:///{tmp_path}/own.db", workflows=[Order, Dated], jobs=["tests.server.test_client"])
    )
    with made as found:
        yield found


def test_a_class_is_run_and_looked_at(engine: Any) -> None:
    run = engine.run(Order(order_id=7))
    assert isinstance(run, Run)
    assert run.status is RunStatus.COMPLETED
    assert run.outputs == {"validate": 7, "charge": {"charged": 7, "express": False}}
    assert run.output("charge")["charged"] == 7
    assert run.input == {"order_id": 7, "express": False}
    assert [node.name for node in run.nodes()] == ["validate", "charge"]
    assert [attempt.number for attempt in run.node("charge").attempts] == [1]
    assert [line.message for line in run.logs()] == ["validating 7"]
    assert "completed" in str(run.why())
    assert run.metrics.attempts == 2
    assert run.progress == (2, 2, 0, 0)
    assert run.audit() == []
    assert run.checkpoint(2).step == 2
    assert run.graph.nodes["charge"].depends_on == ("validate",)
    assert engine.compare(run, engine.run(Order(order_id=7))).same_outputs
    assert run.id in [each.id for each in engine.runs(workflow="Order", status="COMPLETED")]
    assert run.id in [each.id for each in engine.runs(order="duration", search="ORDER", limit=1).all()]
    assert engine.count_runs("workflow", prefix=run.id)["counts"] == [{"value": "Order", "count": 1, "exact": True}]
    assert engine.get(run.id).id == run.id


def test_a_failed_run_is_retried_forked_and_deleted(engine: Any) -> None:
    run = engine.start(Order(order_id=-1), tags={"customer": "7"})
    run.wait(30)
    assert run.status is RunStatus.FAILED
    with pytest.raises(RunFailed, match="no such order"):
        run.check()
    assert [touched.name for touched in run.retry(dry_run=True)] == ["charge"]
    assert run.retry().wait(30).status is RunStatus.FAILED
    assert len(run.node("charge").attempts) == 2
    assert run.node("charge").error.message == "no such order"
    assert run.reattempt("charge").wait(30).status is RunStatus.FAILED
    assert [touched.name for touched in run.reattempt("validate", cascade=True, dry_run=True)]
    fork = run.fork("charge", input={"express": True})
    assert fork.wait(30).status is RunStatus.FAILED
    assert fork.origin.run_id == run.id
    assert [each.id for each in run.forks()] == [fork.id]
    assert {each.id for each in engine.runs(tag={"customer": "7"})} == {run.id, fork.id}
    fork.delete()
    with pytest.raises(RunNotFound):
        engine.get(fork.id)
    with pytest.raises(RunConflict, match="cannot be cancelled"):
        run.cancel()


def retried_over_http(url: str, run_id: str, **body: Any) -> None:
    answer = httpx.post(f"{url}/api/v1/runs/{run_id}/retry", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["status"] != "PAUSED"


def retried_by_a_client(url: str, run_id: str, **options: Any) -> None:
    with Client(url) as client:
        client.get(run_id).retry(**options)


@pytest.mark.parametrize("retry", [retried_over_http, retried_by_a_client])
def test_a_run_that_needs_an_input_and_a_retry_is_given_both_at_once(tmp_path: Path, retry: Any) -> None:
    store = f"sqlite:///{tmp_path}/gift.db"
    run_id = left_by_the_class_before(store)
    with running(store, worker={"workflows": [Gift]}, **SERVED) as serving, Client(serving.url) as client:
        retry(serving.url, run_id, input={"ribbons": 3})
        run = client.get(run_id).wait(30).check()
        assert (run.input, run.output("pack")) == ({"ribbons": 3}, 3)
        assert [attempt.status for attempt in run.node("pack").attempts] == ["FAILED", "COMPLETED"]


def test_what_is_given_has_the_types_of_python(engine: Any) -> None:
    """Also where no class is at hand that says which: they are written by the types of the values."""
    run = engine.run(Dated(day=date(2026, 1, 2)))
    assert run.result == [date(2026, 1, 2)]
    assert run.fork("print", input={"day": date(2027, 3, 4)}).wait(30).result == [date(2027, 3, 4)]
    document = Document.parse(
        '{"name": "told", "nodes": [{"id": "a", "handler": "transform", "config": {"template": "{{ input.days }}"}}]}'
    )
    assert engine.run(document, input={"days": {date(2026, 1, 2)}}).result == {"result": ["2026-01-02"]}
    with pytest.raises(InputError, match=r"type builtins.object cannot be kept as JSON \(at \$.*days\)"):
        engine.run(document, input={"days": object()})
    trigger = Trigger("daily", Dated, cron="0 0 * * *", input={"day": date(2026, 1, 2)})
    assert trigger.input == {"day": "2026-01-02"}


def test_a_run_that_goes_on_is_paused_resumed_and_cancelled(engine: Any) -> None:
    builder = Builder("slow")
    builder.node("first", job="tests.server.test_client:slow")
    builder.node("second", job="tests.server.test_client:slow")
    run = engine.start(builder)
    with pytest.raises(RunStillActive):
        run.wait(0.01)
    run.pause()
    assert run.status is RunStatus.PAUSED
    for go_on in run.retry, run.resume:
        with pytest.raises(InputError, match=r"knots: resume and retry take only what the class of run .* misses"):
            go_on(input={"knots": 2})
    assert run.resume().wait(30).status is RunStatus.COMPLETED
    builder = Builder("stops")
    builder.node("only", job="tests.server.test_client:wait_for_stop")
    run = engine.start(builder)
    run.cancel(grace_seconds=1)
    assert run.wait(30).status is RunStatus.CANCELLED
    with pytest.raises(RunCancelled):
        run.check()


def test_documents_are_saved_and_started(engine: Any) -> None:
    saved = engine.save(Document(ADD))
    assert saved.version == 1
    assert "add" in [each.name for each in engine.workflows()]
    assert engine.run("add", input={"a": 1}).output("y") == {"result": 2}
    assert engine.run("add@1", input={"a": 2}).output("y") == {"result": 3}
    assert engine.run(Document(ADD), input={"a": 3}).output("y") == {"result": 4}
    with pytest.raises(InputError, match="expected an integer"):
        engine.start("add", input={"a": "x"})
    with pytest.raises(InputError):
        engine.start("nothing")


def test_the_same_key_is_the_same_run(engine: Any) -> None:
    first = engine.start(Order(order_id=1), idempotency_key="client")
    assert engine.start(Order(order_id=1), idempotency_key="client").id == first.id
    with pytest.raises(RunConflict):
        engine.start(Order(order_id=2), idempotency_key="client")
    named = engine.start(Order(order_id=1), run_id="named-by-us")
    assert engine.start(Order(order_id=1), run_id="named-by-us").id == named.id
    assert len(engine.start_many([Order(order_id=1), Order(order_id=2)])) == 2


def test_a_graph_is_frozen_exported_and_put_back(engine: Any) -> None:
    run = engine.start(Order(order_id=-1)).wait(30)
    run.freeze()
    form = run.export_graph()
    assert set(form["nodes"]) == {"validate", "charge"}
    assert run.import_graph(form).id == run.id
    with pytest.raises(Exception, match="problem"):
        run.import_graph({"version": 1, "nodes": {}})


def test_a_client_has_the_verbs_of_an_engine() -> None:
    for name in ("start", "start_many", "save", "workflows", "get", "compare", "runs", "wait", "adopt", "close"):
        wanted = list(inspect.signature(getattr(Engine, name)).parameters)
        assert list(inspect.signature(getattr(Client, name)).parameters) == wanted, name


def test_events_are_followed(serving: Serving) -> None:
    with Client(serving.url) as client:
        run = client.start(Order(order_id=5))
        seen = []
        for event in client.events(run):
            seen.append(event.data["seq"])
            if event.data["kind"] == "run" and event.data["status"] == "COMPLETED":
                break
        assert seen == list(range(1, len(seen) + 1))
        for each in (run, client.start(Order(order_id=7))):  # one that has ended, and one that goes on
            *entries, end = client.events(each, until="ended")
            assert [event.data["seq"] for event in entries] == list(range(1, each.row.seq + 1))
            assert (end.kind, end.data) == ("end", {"run": each.id, "status": "COMPLETED"})
        for wrong in ({"run": run.id, "until": "ends"}, {"until": "ended"}):
            with pytest.raises(InputError, match="until="):
                client.events(**wrong)  # type: ignore[arg-type]
        again = client.start(Order(order_id=6))
        assert next(each for each in client.events() if each.data.get("id") == again.id).kind == "run"


def test_trouble_with_the_server_is_told(serving: Serving, tmp_path: Path) -> None:
    for url in ("ftp://x", "nothing", 7, "http://user:secret@localhost", "http://localhost?x=1"):
        with pytest.raises(InputError):
            Client(url)  # type: ignore[arg-type]
    with Client("http://127.0.0.1:9") as client, pytest.raises(ServerError, match="cannot be reached"):
        client.get("r")
    with running(f"sqlite:///{tmp_path}/tokens.db") as other:
        text, _ = create_token(other.service.store, ["read"])
        with Client(other.url) as client, pytest.raises(NotAllowed, match="expected a token"):
            client.runs()
        with Client(other.url, token=text) as client:
            assert client.runs() == []
            with pytest.raises(NotAllowed, match="scope 'run'"):
                client.start("add")
    with Client(serving.url) as client, pytest.raises(RunNotFound, match="nobody"):
        client.get("nobody")


def test_coroutines_have_the_same_client(serving: Serving) -> None:
    async def program() -> None:
        async with Client(serving.url) as client:
            run = await client.run(Order(order_id=8))
            assert await run.status is RunStatus.COMPLETED
            assert await run.output("charge") == {"charged": 8, "express": False}
            failing = await client.start("Order", input={"order_id": -8})
            await failing
            assert await failing.status is RunStatus.FAILED
            again = await failing.retry()
            with pytest.raises(RunFailed):
                await (await again.wait(30)).check()
            assert run.id in [each.id for each in await client.runs(workflow="Order")]
            assert await (await client.wait(run.id, 30)).status is RunStatus.COMPLETED
            assert not (await client.compare(run, await client.run(Order(order_id=9)))).same_outputs
            assert "ship" not in [trigger.name for trigger in await client.triggers.all()]
            kinds = [event.kind async for event in client.events(run, until="ended")]
            assert kinds == ["journal"] * (await client.get(run.id)).sync.row.seq + ["end"]
            seen = 0
            async for event in client.events(run):
                seen += 1
                if event.data["kind"] == "run" and event.data["status"] == "COMPLETED":
                    break
            assert seen == (await client.get(run.id)).sync.row.seq
            builder = Builder("slow")
            builder.node("only", job="tests.server.test_client:slow")
            with pytest.raises(RunStillActive):
                await (await client.start(builder)).wait(0.01)

    asyncio.run(program())


def test_a_server_without_the_code_checks_and_draws_what_workers_have(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/registered.db"
    with running(url) as other, Client(other.url) as client:
        with pytest.raises(InputError, match="no workflow 'Order' is known"):
            client.start("Order")
        with Engine(url) as worker:
            worker.work([Order], wait=0)
            workflow = client.parts.transport.get("/api/v1/workflows/Order")
            assert (workflow["kind"], workflow["input"]["required"]) == ("class", ["order_id"])
            assert [each["name"] for each in client.parts.transport.get("/api/v1/workflows")["items"]] == ["Order"]
            graph = client.parts.transport.get("/api/v1/workflows/Order/graph")
            assert graph["nodes"]["ids"] == ["validate", "charge"]
            with pytest.raises(InputError, match="expected an integer"):
                client.start("Order", input={"order_id": "seven"})
            with pytest.raises(InputError, match="express_delivery"):
                client.start("Order", input={"order_id": 7, "express_delivery": True})
            run = client.run("Order", input={"order_id": 7})
            assert run.input == {"order_id": 7, "express": False}
            assert run.output("charge")["charged"] == 7
            typed = {"input_file": None, "key": None, "tag": None, "run_id": "typed", "deadline": None, "priority": 0}
            commands.run(Connection(None, server=other.url), "Order", inputs=["order_id=9", "express=yes"], **typed)
            assert client.get("typed").input == {"order_id": 9, "express": True}


def test_who_waits_for_a_quiet_run_is_told_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Heartbeats come meanwhile: they are no news of the run."""
    monkeypatch.setattr(server_events, "HEARTBEAT_SECONDS", 0.1)
    with running(f"sqlite:///{tmp_path}/quiet.db") as serving, Client(serving.url) as client:
        run = client.start(Document(ADD), input={"a": 1})  # nobody works
        with pytest.raises(RunStillActive):
            run.wait(0.5)
        requests = serving.service.requests
        assert requests is not None
        before = requests.counts.total()
        with pytest.raises(RunStillActive):
            run.wait(0.15)
        assert requests.counts.total() - before <= 3, "a short wait asks at its beginning and at its end"


def test_who_waits_for_a_run_reads_it_when_it_may_have_ended_and_not_for_each_node(serving: Serving) -> None:
    chain = Builder("chain")
    for number in range(8):
        chain.node(f"n{number}", job="tests.server.test_client:nap", depends_on=[f"n{number - 1}"] if number else [])
    with Client(serving.url) as client:
        run = client.start(chain)
        requests = serving.service.requests
        assert requests is not None
        before = requests.counts.total()
        assert run.wait(30).status is RunStatus.COMPLETED
        assert requests.counts.total() - before <= 8


def test_the_time_of_a_client_is_that_of_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the clock of the client's machine says, from the first question on."""
    with running(f"sqlite:///{tmp_path}/ahead.db") as serving, Client(serving.url) as client:
        store = serving.service.store
        monkeypatch.setattr(store, "now", lambda: time.time_ns() // 1_000 + 3_600 * SECOND)
        now = client.parts.store.now()
        assert abs(store.now() - now) < 60 * SECOND


class Scripted:
    """A transport whose streams give these lines, or fail."""

    url, httpx = "http://scripted", httpx

    def __init__(self, *streams: list[str] | Exception) -> None:
        self._streams = list(streams)
        self.lasts: list[str | None] = []

    @contextmanager
    def stream(self, path: str, *, last: str | None, timeout: float | None) -> Iterator[Iterator[str]]:
        self.lasts.append(last)
        found = self._streams.pop(0)
        if isinstance(found, Exception):
            raise found
        yield iter(found)


def test_a_stream_is_followed_for_as_long_as_is_said() -> None:
    for seconds in (60, 0.9):
        transport: Any = Scripted(["event: journal", "id: 1", 'data: {"seq": 1}', ""])
        assert next(client_events.follow(transport, "path", None, seconds=seconds)) == ("journal", "1", {"seq": 1})
        assert list(client_events.follow(transport, "path", None, seconds=0)) == []
        assert transport.lasts == [None]


def test_a_stream_that_was_quiet_for_long_goes_on_after_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 1_000_000, 5))  # every look at the clock is 5 s later
    monkeypatch.setattr(client_events, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(client_events, "sleep", lambda _: None)
    away = httpx.ConnectError("refused")
    transport = Scripted(
        ["id: 7", "", *[": heartbeat", ""] * 30], away, StoreError("closing"), ["event: end", "data: {}", ""]
    )
    assert [event.kind for event in client_events.follow(transport, "/events", None)] == ["end"]  # type: ignore[arg-type]
    assert transport.lasts == [None, "7", "7", "7"]
    with pytest.raises(ServerError):
        list(client_events.follow(Scripted(*[away] * 20), "/events", None))  # type: ignore[arg-type]
