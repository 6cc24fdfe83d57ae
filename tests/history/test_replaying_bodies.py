"""Bodies of every kind are replayed, wherever they ran, and ask nobody."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from stepwell import Builder, Context, Engine, Retry, Workflow, step
from stepwell.engine.reports.replay import replay_cassette
from stepwell.errors import ReplayMismatch
from stepwell.history.httpx import RecordingTransport
from stepwell.history.replay.loading import read_cassette
from tests.engine.ledger import noted
from tests.history import bodies
from tests.history.replayed import Order, refuse

ASKING: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (bodies.ask, {"values": ["a", "b", "a"]}),
    (bodies.ask, {"values": [1, 2], "durable": True}),
    (bodies.ask_side_by_side, {"values": [1, 2, 1, 3, 1]}),
    (bodies.ask_in_threads, {"values": [1, 2, 1, 3, 1]}),
    (bodies.use_decorated, {}),
    (bodies.use_decorated_later, {}),
    (bodies.nested, {}),
    (bodies.fail_then_answer, {}),
    (bodies.fail_then_answer_on_the_loop, {}),
    (bodies.draw_twice, {}),
    (bodies.charge_and_die, {}),
]
QUIET: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (bodies.draw, {}),
    (bodies.tell_the_time, {}),
    (bodies.large_answers, {"size": 50_000, "times": 3}),
    (bodies.ask_with_request, {}),
    (bodies.tuples, {}),
    (bodies.read_clock_in_an_effect, {}),
]
DIES = bodies.charge_and_die


def named(case: Any) -> str:
    return getattr(case, "__name__", "")


@pytest.mark.parametrize("isolation", ["thread", "process"])
@pytest.mark.parametrize(("job", "args"), [*ASKING, *QUIET], ids=named)
def test_a_body_is_replayed(
    sqlite_engine: Engine, ledger: str, job: Callable[..., Any], args: dict[str, Any], isolation: Any
) -> None:
    if job is DIES and isolation == "thread":
        return  # it would take the tests with it
    given = args if (job, args) in QUIET else {**args, "ledger": ledger}
    w = Builder("bodies")
    w.node(
        "body", job=job, args=given, isolation=isolation, side_effects="recordable", retry=Retry(4, base_delay=0.001)
    )
    run = sqlite_engine.run(w)
    before = noted(ledger)
    report = run.replay()
    assert len(report.executed) == 1
    if job is not bodies.draw_twice:  # which notes what it drew by itself
        assert noted(ledger) == before


def answer(request: httpx.Request) -> httpx.Response:
    CALLED.append(str(request.url))
    return httpx.Response(200, json={"path": request.url.path}, headers={"set-cookie": "session=hush"})


CALLED: list[str] = []


class Http(Workflow):
    @step(side_effects="recordable")
    def ask(self) -> list[Any]:
        with httpx.Client(transport=RecordingTransport(httpx.MockTransport(answer))) as client:
            found = [
                client.get("http://shop/a"),
                client.post("http://shop/b", json={"x": 1}),
                client.get("http://shop/a"),
            ]
            return [[each.status_code, each.json()] for each in found]

    @step(side_effects="recordable")
    async def ask_later(self) -> Any:
        async with httpx.AsyncClient(transport=RecordingTransport(httpx.MockTransport(answer))) as client:
            return (await client.get("http://shop/c")).json()


def test_requests_of_httpx_are_served(engine: Engine) -> None:
    CALLED.clear()
    run = engine.run(Http())
    assert len(CALLED) == 4
    assert run.replay().effects == 4
    assert len(CALLED) == 4


def test_a_node_that_was_asked_for_again_is_replayed_with_its_own_key(engine: Engine) -> None:
    run = engine.run(Keyed())
    run.reattempt("charge").wait(60).check()
    assert run.output("charge").endswith(":1")
    assert run.replay().executed == ("charge",)


class Keyed(Workflow):
    @step(side_effects="recordable")
    def charge(self, ctx: Context) -> str:
        return ctx.idempotency_key


def test_an_output_may_be_as_deep_as_can_be_stored(engine: Engine, tmp_path: Any) -> None:
    run = engine.run(Deep())
    path = run.export(tmp_path / "deep.json")
    assert replay_cassette(read_cassette(path.read_bytes()), jobs=["tests"]).executed == ("dig",)


class Deep(Workflow):
    @step(side_effects="recordable")
    def dig(self, ctx: Context) -> Any:
        found: Any = []
        for _ in range(198):
            found = [found]
        ctx.effect("dig", lambda depth: depth, found)
        return found


def test_a_body_that_leaves_python_does_not_take_the_replay_along(engine: Engine) -> None:
    leaves = False

    class Leaving(Workflow):
        @step(side_effects="pure")
        def work(self) -> int:
            return sys.exit(3) if leaves else 1

    run = engine.run(Leaving())
    leaves = True
    with pytest.raises(ReplayMismatch, match="raised SystemExit: 3"):
        run.replay()


class Custom(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(f"code {code}")
        self.code = code


def fail(code: int) -> None:
    raise Custom(code)


class Catching(Workflow):
    """Its output depends on what it caught."""

    @step(side_effects="recordable")
    def catch(self, ctx: Context) -> list[str]:
        found = []
        for function, argument in ((refuse, "no line"), (fail, 7), (int, "x"), (bytes.fromhex, "zz"), ({}.pop, "key")):
            try:
                ctx.effect("fails", function, argument)
            except (ConnectionError, Custom, ValueError, LookupError) as error:
                found.append(f"{type(error).__name__}: {error}")
        return found


def test_what_effects_raised_is_raised_again(engine: Engine) -> None:
    run = engine.run(Catching())
    assert "Custom: code 7" in run.output("catch")
    assert run.replay().effects == 5


def test_several_may_replay_at_once(engine: Engine) -> None:
    run = engine.run(Order())
    expected = run.replay()._replace(seconds=0)
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(run.replay()._replace(seconds=0))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 8


class Greedy(Workflow):
    """Changes what it was told."""

    @step(side_effects="recordable")
    def take(self, ctx: Context) -> list[int]:
        found: list[int] = ctx.effect("numbers", lambda: [1, 2])
        found.append(3)
        return found


def test_what_a_body_does_to_an_answer_does_not_change_the_record(engine: Engine, tmp_path: Any) -> None:
    recorded = read_cassette(engine.run(Greedy()).export(tmp_path / "greedy.json").read_bytes())
    for _ in range(3):
        assert replay_cassette(recorded, jobs=["tests"]).effects == 1
