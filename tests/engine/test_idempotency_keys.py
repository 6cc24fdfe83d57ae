"""What is told of the idempotency keys of a run is what its bodies were given."""

from __future__ import annotations

from typing import Any

from stepwell import Client, Engine, Workflow, step, task
from stepwell.engine.runs.records import attempt_detail, node_detail
from tests.engine.conftest import OpenEngine
from tests.server.running import running

GIVEN: dict[tuple[str, str, int], str] = {}
FAILS: set[str] = set()


def note(ctx: Any) -> int:
    GIVEN[ctx.run_id, ctx.node_name, ctx.attempt] = ctx.idempotency_key
    if ctx.node_name in FAILS:
        FAILS.discard(ctx.node_name)
        raise ConnectionError("once")
    return len(GIVEN)


class Order(Workflow):
    order: int = 7

    @step(retry=2)
    def reserve(self, ctx: Any) -> int:
        return note(ctx)

    @step(idempotency_key=lambda self: f"order-{self.order}")
    def charge(self, ctx: Any) -> int:
        return note(ctx)

    @task(depends_on=charge)
    def thank(self, ctx: Any) -> int:
        return note(ctx)


def told(run: Any, node: str) -> list[str | None]:
    return [attempt.idempotency_key for attempt in run.node(node).attempts]


def given(run: Any, node: str) -> list[str]:
    return [GIVEN[run.id, node, number + 1] for number in range(len(run.node(node).attempts))]


def detail(run: Any, node: str) -> Any:
    stored = run._stored
    return node_detail(stored, stored.index_of(node))


def test_attempts_have_the_key_that_their_bodies_were_given(engine: Engine) -> None:
    FAILS.add("reserve")
    run = engine.run(Order())
    run.reattempt("reserve", cascade=True).wait(30).check()
    run.reattempt("thank").wait(30).check()
    assert told(run, "reserve") == given(run, "reserve") == [f"{run.id}:reserve"] * 2 + [f"{run.id}:reserve:1"]
    assert told(run, "thank") == given(run, "thank") == [f"{run.id}:thank{end}" for end in ("", ":1", ":2")]
    found = detail(run, "thank")
    assert (found["idempotency_key"], found["own_idempotency_key"]) == (f"{run.id}:thank:2", False)
    assert [each["idempotency_key"] for each in found["attempt_list"]] == told(run, "thank")
    assert [attempt_detail(each)["idempotency_key"] for each in run.node("thank").attempts] == told(run, "thank")


def test_a_key_that_a_function_of_the_node_makes_is_not_guessed(engine: Engine) -> None:
    run = engine.run(Order())
    assert given(run, "charge") == ["order-7"]
    assert told(run, "charge") == [None]
    found = detail(run, "charge")
    assert (found["idempotency_key"], found["own_idempotency_key"]) == (None, True)
    assert found["attempt_list"][0]["idempotency_key"] is None


def test_a_fork_has_keys_of_its_own_and_none_of_what_it_shares(engine: Engine) -> None:
    fork = engine.run(Order()).fork("thank").wait(30).check()
    assert told(fork, "reserve") == [None]
    assert told(fork, "thank") == given(fork, "thank") == [f"{fork.id}:thank"]
    fork.reattempt("reserve", cascade=True).wait(30).check()
    assert told(fork, "reserve")[1:] == [GIVEN[fork.id, "reserve", 2]] == [f"{fork.id}:reserve:1"]


def before() -> type[Workflow]:
    class Healed(Workflow):
        @step(idempotency_key=lambda self: "made")
        def pay(self, ctx: Any) -> int:
            return note(ctx)

        @step
        def pack(self, ctx: Any) -> int:
            return note(ctx)

        @step
        def send(self) -> int:
            raise ValueError("no stamps")

    return Healed


def after() -> type[Workflow]:
    class Healed(Workflow):
        @step
        def pay(self, ctx: Any) -> int:
            return note(ctx)

        @step(was="pack")
        def wrap(self, ctx: Any) -> int:
            return note(ctx)

        @step
        def send(self) -> int:
            return 1

    return Healed


def test_a_key_outlives_a_new_name_and_is_not_guessed_after_a_function_has_made_it(open_sqlite: OpenEngine) -> None:
    with open_sqlite() as engine:
        failed = engine.run(before()(), check=False).id
    run = open_sqlite(workflows=[after()]).get(failed).retry().wait(30).check()
    run.reattempt("wrap", cascade=True).wait(30).check()
    assert told(run, "wrap") == [f"{run.id}:pack", f"{run.id}:pack:1"]
    assert told(run, "wrap") == [GIVEN[run.id, "pack", 1], GIVEN[run.id, "wrap", 2]]
    assert given(run, "pay") == ["made"]
    assert told(run, "pay") == [None], "its function is gone, and its key was not that of the run"


def test_a_client_is_told_the_same(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/keys.db"
    with Engine(url, workflows=[Order]) as engine:
        run = engine.run(Order())
        expected = given(run, "thank")
    with running(url) as serving, Client(serving.url) as remote:
        again = remote.get(run.id)
        assert told(again, "thank") == expected
        path = f"/api/v1/runs/{run.id}/nodes"
        for node, key in (("thank", f"{run.id}:thank"), ("charge", None)):
            found = remote.parts.transport.get(f"{path}/{node}")
            assert (found["idempotency_key"], found["own_idempotency_key"]) == (key, key is None)
            (attempt,) = remote.parts.transport.get(f"{path}/{node}/attempts")
            assert attempt["idempotency_key"] == found["attempt_list"][0]["idempotency_key"] == key
