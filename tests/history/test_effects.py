"""Effects are recorded with the attempt that made them, wherever its body runs."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import stepwell
from stepwell import Builder, Engine, NodeStatus, Retry, Run
from stepwell.base.codec import encode, sha256
from stepwell.base.ids import AttemptId
from stepwell.core.model import LineRow
from stepwell.core.model.lines import EFFECT
from stepwell.core.store.rules import payloads
from stepwell.errors import StoreCorrupt
from stepwell.history import Effect, effect
from stepwell.history.effects.record import effects_of
from tests.engine.conftest import OpenEngine
from tests.engine.ledger import noted
from tests.history import bodies

ISOLATIONS: list[Any] = ["thread", "process"]


def run_one(engine: Engine, job: Callable[..., Any], isolation: Any = "thread", **options: Any) -> Run:
    w = Builder("effects")
    node = {name: options.pop(name) for name in ("retry", "timeout", "side_effects") if name in options}
    w.node("body", job=job, args=options, isolation=isolation, **node)
    return engine.run(w, check=False)


def told(effects: list[Effect]) -> list[tuple[int, int, str, Any]]:
    return [(each.attempt, each.index, each.name, each.response) for each in effects]


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_an_effect_is_recorded_with_all_that_is_known_of_it(engine: Engine, ledger: str, isolation: Any) -> None:
    before = time.time()
    run = run_one(engine, bodies.ask, isolation, ledger=ledger, values=["a", "b", "a"])
    assert run.output("body") == [{"value": "a"}, {"value": "b"}, {"value": "a"}]
    first, second, third = run.effects()
    assert (first.node, first.attempt, first.index, first.name) == (run.graph.order[0], 1, 0, "ask")
    assert first.request == {"args": [ledger, "a"]}
    assert first.request_hash == sha256(encode(first.request))
    assert first.response == {"value": "a"}
    assert first.response_hash == sha256(encode({"value": "a"}))
    assert before - 1 < first.time < time.time() + 1
    assert 0 <= first.seconds < 60
    assert (first.error, first.durable, first.awaited, first.from_attempt) == (None, False, False, None)
    assert [each.occurrence for each in (first, second, third)] == [0, 0, 1]
    assert len({each.match for each in run.effects()}) == 3


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_effects_side_by_side_are_told_apart_by_what_they_ask(engine: Engine, ledger: str, isolation: Any) -> None:
    values = [1, 2, 1, 3, 1]
    for job in (bodies.ask_side_by_side, bodies.ask_in_threads):
        run = run_one(engine, job, isolation, ledger=ledger, values=values)
        assert run.output("body") == [{"value": value} for value in values]
        effects = run.effects()
        assert sorted(each.index for each in effects) == [0, 1, 2, 3, 4]
        ones = [each for each in effects if each.response == {"value": 1}]
        assert [each.occurrence for each in ones] == [0, 1, 2]
        assert {each.awaited for each in effects} == {job is bodies.ask_side_by_side}


def test_a_failed_attempt_keeps_its_effects_and_the_error_of_one(engine: Engine, ledger: str) -> None:
    run = run_one(engine, bodies.ask_and_fail, ledger=ledger, retry=Retry(2, base_delay=0.001))
    assert run.status == "FAILED"
    assert [(each.attempt, each.name) for each in run.effects()] == [
        (1, "ask"),
        (1, "refuse"),
        (2, "ask"),
        (2, "refuse"),
    ]
    refused = run.effects("body", attempt=2)[1]
    assert refused.error is not None
    assert refused.error.type == "builtins.ConnectionError"
    assert refused.error.bases[:2] == ["builtins.ConnectionError", "builtins.OSError"]
    assert (refused.error.message, refused.error.args) == ("no line", ["no line"])
    assert str(refused.error) == "ConnectionError: no line"
    assert refused.response is None


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_a_decorated_function_finds_its_body(engine: Engine, ledger: str, isolation: Any) -> None:
    run = run_one(engine, bodies.use_decorated, isolation, ledger=ledger)
    assert run.output("body") == [{"value": 1}, {"value": 1}, {"value": "{2}"}]
    first, again, with_ctx = run.effects()
    assert first.request == again.request == {"ledger": ledger, "value": 1}
    assert (first.match[:2], again.occurrence) == (again.match[:2], 1)
    assert (with_ctx.name, with_ctx.request) == ("with ctx", {"value": "{2}"})
    run = run_one(engine, bodies.use_decorated_later, isolation, ledger=ledger)
    assert told(run.effects()) == [(1, 0, "decorated later", {"value": 1})]


def test_outside_of_bodies_a_decorated_function_is_what_it_was(ledger: str) -> None:
    assert bodies.ask_decorated(ledger, 1) == {"value": 1}
    assert bodies.ask_decorated.__name__ == "ask_decorated"


def test_what_an_effect_does_inside_is_not_recorded_once_more(engine: Engine, ledger: str) -> None:
    run = run_one(engine, bodies.nested, ledger=ledger)
    assert [each.name for each in run.effects()] == ["outer"]
    assert run.output("body") == [{"value": 1}, {"value": 2}]


def test_what_is_not_json_is_refused_with_advice(engine: Engine) -> None:
    run = run_one(engine, bodies.ask_what_is_no_json)
    error = run.node("body").error
    assert error is not None
    assert "what effect 'odd' of node 'body' asks cannot be recorded" in error.message
    assert "say with request=... what identifies this request" in error.message
    assert run.effects() == []

    run = run_one(engine, bodies.ask_with_request)
    assert (run.output("body"), run.effects()[0].request) == ([1, 2], {"numbers": 2})

    run = run_one(engine, bodies.answer_no_json)
    error = run.node("body").error
    assert error is not None
    assert "was done, and what it returned cannot be recorded" in error.message
    (recorded,) = run.effects()
    assert recorded.error is not None


@pytest.mark.parametrize(("name", "function"), [("", abs), (None, abs), (7, abs), ("x", 7)])
def test_rubbish_is_refused(engine: Engine, name: Any, function: Any) -> None:
    class Rubbish(stepwell.Workflow):
        @stepwell.step
        def body(self, ctx: stepwell.Context) -> None:
            ctx.effect(name, function, 1)

    run = engine.run(Rubbish(), check=False)
    error = run.node("body").error
    assert error is not None
    assert error.type == "InputError"


@pytest.mark.parametrize("name", ["", None, 7])
def test_a_decorator_without_a_name_is_refused_with_its_line(name: Any) -> None:
    with pytest.raises(stepwell.DefinitionError, match=r"expected a name.*\n.*test_effects.py"):
        effect(name)


def test_a_body_gets_what_a_replay_would_give_it(engine: Engine) -> None:
    assert run_one(engine, bodies.tuples).output("body") == "{'pair': [1, 2]}"


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_secrets_are_not_stored_and_the_body_still_gets_them(engine: Engine, isolation: Any) -> None:
    secret = stepwell.secret("1234567")  # part of a number, too
    run = run_one(engine, bodies.tell_secret, isolation, secret="1234567")
    assert run.output("body") == secret
    (recorded,) = run.effects()
    assert recorded.request == {"args": ["***"]}
    assert recorded.response == {"token": "***", "***": ["***"], "number": "***"}
    assert recorded.response_hash == sha256(encode(recorded.response))


def test_large_responses_are_stored_once_for_each_run(sqlite_engine: Engine) -> None:
    store: Any = sqlite_engine.store
    size = payloads.LARGE
    run = run_one(sqlite_engine, bodies.large_answers, size=size, times=3)
    again = run_one(sqlite_engine, bodies.large_answers, size=size, times=2)
    assert [len(each.response) for each in (*run.effects(), *again.effects())] == [size] * 5
    assert list(store._reader.execute("SELECT length(data) FROM blob")) == [(size + 2,)] * 2
    for each in (run, again):
        each.delete()
    assert list(store._reader.execute("SELECT count(*) FROM blob")) == [(0,)]


def test_no_effect_is_dropped_however_many_there_are(engine: Engine) -> None:
    """Of lines a thousand are kept."""
    effects = run_one(engine, bodies.many_effects, count=3_000).effects()
    assert [each.index for each in effects] == list(range(3_000))


def test_effects_are_not_among_the_logs(engine: Engine, ledger: str) -> None:
    run = run_one(engine, bodies.ask, ledger=ledger, values=[1])
    assert run.logs() == []


def test_a_pure_node_may_not_ask(engine: Engine, ledger: str) -> None:
    run = run_one(engine, bodies.ask, ledger=ledger, values=[1], side_effects="pure")
    error = run.node("body").error
    assert error is not None
    assert "declared side_effects=\"pure\" and asks for effect 'ask'" in error.message
    assert noted(ledger) == []


def test_the_effects_of_an_attempt_that_timed_out_are_kept(open_engine: OpenEngine, ledger: str) -> None:
    release = threading.Event()

    class Slow(stepwell.Workflow):
        @stepwell.step(timeout=0.2)
        def body(self, ctx: stepwell.Context) -> None:
            ctx.effect("before", abs, -1)
            release.wait(60)
            ctx.effect("after", abs, -2)

    run = open_engine().run(Slow(), check=False)
    release.set()
    assert run.node("body").status is NodeStatus.FAILED
    assert [each.name for each in run.effects()] == ["before"]


def test_an_effect_that_is_cancelled_is_recorded_as_that(engine: Engine) -> None:
    class Slow(stepwell.Workflow):
        @stepwell.step
        async def body(self, ctx: stepwell.Context) -> str:
            try:
                await asyncio.wait_for(ctx.effect("never", asyncio.sleep, 60), 0.02)
            except TimeoutError:
                return "gave up"
            return "was answered"

    run = engine.run(Slow())
    assert run.output("body") == "gave up"
    (recorded,) = run.effects()
    assert recorded.error is not None
    assert recorded.error.type == "asyncio.exceptions.CancelledError"


def test_an_effect_that_a_newer_version_has_written_is_not_guessed_at() -> None:
    written = encode({"format": 99, "index": 0, "name": "rate"})
    row = LineRow(AttemptId("claim.0"), 0, 0, EFFECT, written, 3, 2)
    with pytest.raises(
        StoreCorrupt, match=r"effect 0 of node 'convert', attempt 2, has format 99; .* newer one has written"
    ):
        effects_of([row], {3: "convert"})
