"""A durable effect is there before its body goes on, and no later attempt repeats it."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import httpx
import pytest

from stepwell import Builder, Context, Engine, Retry, RetryLater, RunFailed, Workflow, secret, step
from stepwell.errors import MaskedResponse, StoreFull
from stepwell.history.httpx import RecordingTransport
from tests.engine.conftest import OpenEngine
from tests.engine.ledger import noted
from tests.engine.waiting import eventually
from tests.history import bodies
from tests.history.test_effects import ISOLATIONS, run_one


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_later_attempts_are_served_what_earlier_ones_were_told(engine: Engine, ledger: str, isolation: Any) -> None:
    run = run_one(engine, bodies.fail_then_answer, isolation, ledger=ledger)
    assert run.output("body") == [3, {"value": "charge"}, {"value": "ship"}]
    assert noted(ledger) == ["called charge", "called ship"]
    seen = [(each.attempt, each.index, each.name, each.durable, each.from_attempt) for each in run.effects()]
    assert seen == [
        (1, 0, "charge", True, None),
        (2, 0, "charge", False, 1),
        (2, 1, "ship", True, None),
        (3, 0, "charge", False, 1),
        (3, 1, "ship", False, 2),
    ]


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_the_same_for_async_bodies(engine: Engine, ledger: str, isolation: Any) -> None:
    run = run_one(engine, bodies.fail_then_answer_on_the_loop, isolation, ledger=ledger)
    assert run.output("body") == [2, {"value": "charge"}]
    assert noted(ledger) == ["called charge"]


def test_many_durable_effects_side_by_side(engine: Engine, ledger: str) -> None:
    values = list(range(50))
    w = Builder("durable")
    w.node("body", job=bodies.ask_side_by_side, args={"ledger": ledger, "values": values, "durable": True})
    run = engine.run(w)
    assert run.output("body") == [{"value": value} for value in values]
    assert len(run.effects()) == 50


def test_it_is_stored_before_the_body_goes_on(engine: Engine) -> None:
    go_on = threading.Event()

    class Charge(Workflow):
        @step
        def charge(self, ctx: Context) -> None:
            ctx.effect("plain", abs, -1)
            ctx.effect("durable", abs, -2, durable=True)
            go_on.wait(60)

    run = engine.start(Charge())
    try:
        eventually(run.effects)
        assert [each.name for each in run.effects()] == ["durable"]
    finally:
        go_on.set()
    run.wait(30)
    assert [each.name for each in run.effects()] == ["plain", "durable"]


def test_on_the_loop_too_and_only_what_is_durable(engine: Engine) -> None:
    go_on = threading.Event()

    async def later(value: int) -> int:
        return value

    class Charge(Workflow):
        @step
        async def charge(self, ctx: Context) -> None:
            await ctx.effect("plain", later, 1)
            await ctx.effect("durable", later, 2, durable=True)
            while not go_on.is_set():
                await asyncio.sleep(0.01)

    run = engine.start(Charge())
    try:
        eventually(run.effects)
        assert [each.name for each in run.effects()] == ["durable"]
    finally:
        go_on.set()
    run.wait(30)
    assert [each.name for each in run.effects()] == ["plain", "durable"]


def test_an_effect_that_raised_is_tried_again(engine: Engine) -> None:
    calls: list[int] = []

    def service() -> str:
        calls.append(1)
        if len(calls) == 1:
            raise ConnectionError("busy")
        return "done"

    class Charge(Workflow):
        @step(retry=2)
        def charge(self, ctx: Context) -> Any:
            try:
                return ctx.effect("charge", service, durable=True)
            except ConnectionError:
                ctx.effect("charge", service, durable=True)
            if ctx.attempt == 1:
                raise RetryLater(0)
            return None

    run = engine.run(Charge())
    assert run.output("charge") == "done"
    assert len(calls) == 2
    seen = [(each.attempt, each.occurrence, each.response, each.from_attempt) for each in run.effects()]
    assert seen == [(1, 0, None, None), (1, 1, "done", None), (2, 0, "done", 1)]


def test_a_node_that_is_asked_for_again_after_it_completed_does_it_again(engine: Engine, ledger: str) -> None:
    class Charge(Workflow):
        @step
        def charge(self, ctx: Context) -> list[Any]:
            return [ctx.idempotency_key, ctx.effect("charge", bodies.answer, ledger, "charge", durable=True)]

    run = engine.run(Charge())
    first = run.output("charge")[0]
    run.reattempt("charge")
    run.wait(30)
    assert run.output("charge")[0] != first
    assert noted(ledger) == ["called charge", "called charge"]


def test_a_store_that_is_full_for_a_while_loses_no_durable_effect(
    open_sqlite: OpenEngine, ledger: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_sqlite()
    commit = engine.store.commit
    full = [True, True, True]

    def refusing(batch: Any) -> Any:
        if any(type(op).__name__ == "Append" for op in batch) and full:
            full.pop()
            raise StoreFull("no space left")
        return commit(batch)

    monkeypatch.setattr(engine.store, "commit", refusing)
    w = Builder("durable")
    w.node("body", job=bodies.ask, args={"ledger": ledger, "values": [1], "durable": True})
    run = engine.start(w)
    eventually(lambda: run.status == "COMPLETED")  # who waits is told of the trouble
    assert [each.durable for each in run.effects()] == [True]
    assert noted(ledger) == ["called 1"]
    assert not full


def test_closing_does_not_hang_on_a_body_that_asks_durably(open_engine: OpenEngine) -> None:
    go_on, ended = threading.Event(), threading.Event()
    seen: list[BaseException] = []

    class Charge(Workflow):
        @step
        def charge(self, ctx: Context) -> None:
            go_on.wait(60)
            try:
                ctx.effect("late", abs, -1, durable=True)
            except BaseException as error:
                seen.append(error)
                raise
            finally:
                ended.set()

    engine = open_engine(close_seconds=0.1)
    run = engine.start(Charge())
    eventually(lambda: run.node("charge").status == "RUNNING")
    engine.close()
    go_on.set()
    assert ended.wait(30)
    assert type(seen[0]).__name__ == "Stopped"
    assert "may not write any more" in str(seen[0])


def test_a_response_with_a_secret_is_not_served_with_stars_in_it(engine: Engine) -> None:
    """A later attempt would work with `***`; it is told instead, and may take what there is."""
    token = secret("tok-08cd4485e6873699")
    calls: list[str] = []

    def login() -> dict[str, str]:
        calls.append("login")
        return {"token": token, "user": "ada"}

    class Login(Workflow):
        tolerant: bool

        @step(side_effects="recordable", retry=Retry(2, base_delay=0.001))
        def use(self, ctx: Context) -> Any:
            try:
                found = ctx.effect("login", login, durable=True)
            except MaskedResponse as error:
                if not self.tolerant:
                    raise
                return error.response
            if ctx.attempt == 1:
                raise ConnectionError("once more")
            return found

    with pytest.raises(RunFailed, match=r"was done by attempt 1\. Its response held a secret, which is not stored"):
        engine.run(Login(tolerant=False))
    calls.clear()
    run = engine.run(Login(tolerant=True))
    assert run.output("use") == {"token": "***", "user": "ada"}
    assert calls == ["login"]
    assert [(each.attempt, each.masked, each.error is None) for each in run.effects()] == [
        (1, True, True),
        (2, False, False),
    ]
    assert "holds a secret" in next(line.message for line in run.logs() if line.level == "WARNING")
    run.replay()


def test_what_became_a_secret_after_it_was_asked_is_still_found(engine: Engine) -> None:
    calls: list[str] = []
    password = "correct horse 4711"

    def charge(given: str) -> str:
        calls.append(given)
        return "paid"

    class Charge(Workflow):
        @step(side_effects="recordable", retry=Retry(2, base_delay=0.001))
        def use(self, ctx: Context) -> Any:
            paid = ctx.effect(f"charge {password}", charge, password, durable=True)
            secret(password)
            if ctx.attempt == 1:
                raise ConnectionError("once more")
            return paid

    run = engine.run(Charge())
    assert (run.output("use"), calls) == ("paid", [password])


def test_nor_is_a_secret_in_the_bytes_of_a_response(engine: Engine) -> None:
    token = secret("tok-08cd4485e6873699")
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=b"\xff\xfe" + token.encode()))
    http = httpx.Client(transport=RecordingTransport(transport, durable=True))

    class Fetch(Workflow):
        @step(side_effects="recordable", retry=Retry(2, base_delay=0.001))
        def fetch(self, ctx: Context) -> None:
            http.get("https://x.example/")
            raise ConnectionError("once more")

    with pytest.raises(RunFailed, match="Its response held a secret, which is not stored"):
        engine.run(Fetch())
