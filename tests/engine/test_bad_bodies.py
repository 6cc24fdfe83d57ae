"""Whatever a body does, its attempt says so clearly, and the run goes on by its policy."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

from stepwell import Builder, Engine, RetryLater, Workflow, step, task
from stepwell.engine import NodeError
from stepwell.engine.bodies import attempt
from stepwell.engine.bodies.raised import MAX_TRACEBACK
from tests.engine import jobs

NO_MESSAGE = "(no message: its __str__ raised RuntimeError)"


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no message for you")


class RateLimited(RetryLater):
    """As people write it who forget `super().__init__`."""

    def __init__(self, response: str) -> None:
        self.response = response


def later(seconds: object) -> RetryLater:
    """One whose seconds somebody has changed."""
    error = RetryLater(1)
    error.seconds = seconds  # type: ignore[assignment]
    return error


class Faceless(type):
    """The classes it makes tell nothing of themselves."""

    def __getattribute__(cls, name: str) -> Any:
        raise RuntimeError(f"no {name} for you")


class Nobody(Exception, metaclass=Faceless):
    pass


class OddText(str):
    def isascii(self) -> bool:
        raise RuntimeError("no such question")


class Closed(RetryLater):
    """Raises whatever it is asked, and not only exceptions."""

    def __init__(self) -> None:
        pass

    def __str__(self) -> str:
        return OddText("closed")

    def __getattribute__(self, name: str) -> Any:
        raise SystemExit(f"no {name} for you")


class Hostile(dict[str, Any]):
    """Not what it seems to be."""

    def values(self) -> Any:
        raise SystemError("no values for you")


def bottomless() -> list[Any]:
    bottom: list[Any] = []
    for _ in range(100_000):
        bottom = [bottom]
    return bottom


def circular() -> list[Any]:
    circle: list[Any] = []
    circle.append(circle)
    return circle


RETURNED = {
    "an object": (
        lambda: {"made": [object()]},
        "a value of type builtins.object cannot be kept as JSON; return JSON-able data or nothing (at $.made[0])",
    ),
    "a complex number": (lambda: 1j, "a value of type builtins.complex"),
    "a range": (lambda: [range(3)], "a value of type builtins.range"),
    "a key that is no string": (lambda: {1: "one"}, "the key 1 is not a string"),
    "not a number": (lambda: [float("nan")], "nan is not a JSON number"),
    "infinity": (lambda: {"far": float("inf")}, "inf is not a JSON number"),
    "half a surrogate pair": (lambda: "\ud800", "half of a surrogate pair"),
    "a number with too many digits": (lambda: 10**5000, "Exceeds the limit"),
    "too deep a list": (bottomless, "nested deeper than"),
    "a list that contains itself": (circular, "nested deeper than"),
    "a function": (lambda: [print], "cannot be kept as JSON"),
}


@pytest.mark.parametrize("kind", ["thread", "loop"])
@pytest.mark.parametrize("what", RETURNED)
def test_what_json_cannot_keep_is_refused_with_the_place_it_was_found_at(kind: str, what: str) -> None:
    make, message = RETURNED[what]
    error = error_of(kind, make)
    assert error.type == "NotJson"
    assert error.message.startswith("node 'bad' returned ")
    assert message in error.message


def raising(error: BaseException) -> Any:
    def body() -> None:
        raise error

    return body


def recurse() -> None:
    recurse()


RAISED = {
    "an error": (raising(ValueError("broken")), "ValueError: broken"),
    "an error without a message": (raising(ValueError()), "ValueError: "),
    "an error whose message cannot be shown": (raising(Unprintable()), f"Unprintable: {NO_MESSAGE}"),
    "an error with half a surrogate pair": (raising(ValueError("\ud800")), "ValueError: \\ud800"),
    "an error with a null byte": (raising(ValueError("a\0b")), "ValueError: a\0b"),
    "a group of errors": (
        raising(ExceptionGroup("two", [ValueError(1), KeyError(2)])),
        "ExceptionGroup: two (2 sub-exceptions)",
    ),
    "a request to exit": (raising(SystemExit(3)), "SystemExit: 3"),
    "an interrupt": (raising(KeyboardInterrupt()), "KeyboardInterrupt: "),
    "a bare BaseException": (raising(BaseException("bare")), "BaseException: bare"),
    "the end of a generator": (raising(GeneratorExit()), "GeneratorExit: "),
    "a StopIteration": (raising(StopIteration(1)), None),
    "a cancellation that nobody asked for": (raising(asyncio.CancelledError("mine")), "CancelledError: mine"),
    "endless recursion": (recurse, "RecursionError: maximum recursion depth exceeded"),
    "a RetryLater that was never made": (raising(RateLimited("busy")), "RateLimited: busy\n  a RetryLater without"),
    "a RetryLater of not a number": (
        raising(later(float("nan"))),
        "RetryLater: asked to be retried in 1 s\n  a RetryLater",
    ),
    "a RetryLater of yesterday": (raising(later(-1)), "RetryLater: asked to be retried in 1 s\n  a RetryLater"),
    "a RetryLater of some day": (raising(later("tomorrow")), "RetryLater: asked to be retried in 1 s\n  a RetryLater"),
    "a RetryLater that tells nothing": (raising(Closed()), "Closed: closed\n  a RetryLater without"),
    "an error of a class that tells nothing": (raising(Nobody("who")), "Nobody: who"),
    "a SyntaxError with bytes": (raising(SyntaxError("x", ("f", 1, 1, b"text"))), "SyntaxError: x (f, line 1)"),  # type: ignore[arg-type]
    "a result that hits back": (lambda: Hostile(a=1), "SystemError: no values for you"),
}


def yields() -> Any:
    yield 1


async def yields_later() -> Any:
    yield 1


@pytest.mark.parametrize("kind", ["thread", "loop"])
@pytest.mark.parametrize(
    ("make", "what"),
    [(yields, "a generator"), (yields_later, "an async generator"), (lambda: iter_of([1]), "a generator")],
)
def test_a_body_that_returns_a_generator_is_told_so(kind: str, make: Any, what: str) -> None:
    error = error_of(kind, make)
    assert error.type == "NotJson"
    assert error.message.startswith(f"node 'bad' returned {what}, of which nothing has run: does its body use `yield`?")


def iter_of(items: list[int]) -> Any:
    return (item for item in items)


@pytest.mark.parametrize("kind", ["thread", "loop"])
@pytest.mark.parametrize("what", RAISED)
def test_whatever_a_body_raises_is_recorded(kind: str, what: str) -> None:
    body, message = RAISED[what]
    error = error_of(kind, body)
    if message is not None:
        assert str(error)[: len(message)] == message


def error_of(kind: str, body: Any) -> NodeError:
    """What is recorded of a bad body; the body beside it and the next run are not disturbed."""

    class Bad(Workflow, on_failure="finish"):
        if kind == "thread":

            @step
            def bad(self) -> Any:
                return body()

        else:

            @step
            async def bad(self) -> Any:  # type: ignore[no-redef]
                return body()

        @task(depends_on=None)
        async def beside(self) -> int:
            await asyncio.sleep(0.01)
            return 1

    class Good(Workflow):
        @step
        def thread(self) -> int:
            return 1

        @step
        async def loop(self, thread: int) -> int:
            return thread + 1

    with Engine("memory://", max_concurrent_nodes=1, close_seconds=1) as engine:
        run = engine.run(Bad(), check=False, wait=10)
        assert engine.run(Good(), wait=10).output("loop") == 2
        assert (run.status, run.node("bad").status, run.output("beside")) == ("FAILED", "FAILED", 1)
        (tried,) = run.node("bad").attempts
        assert tried.error is not None
        return tried.error


def test_a_task_that_a_body_made_may_not_end_the_loop_for_all() -> None:
    async def leave() -> None:
        sys.exit(3)

    async def body() -> None:
        await asyncio.create_task(leave())

    class Bad(Workflow, on_failure="finish"):
        @step
        async def bad(self) -> None:
            await body()

        @task(depends_on=None)
        async def beside(self) -> int:
            await asyncio.sleep(0.05)
            return 1

    with Engine("memory://", close_seconds=1) as engine:
        run = engine.run(Bad(), check=False, wait=10)
        assert str(run.node("bad").error) == "SystemExit: 3"
        assert run.output("beside") == 1


HERE = "tests.engine.test_bad_bodies"
IN_A_PROCESS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "leaves": (jobs.leave, {"code": 3}, "SystemExit: 3"),
    "vanishes": (jobs.vanish, {"code": 3}, "ProcessDied: the process of the body ended with exit code 3 before"),
    "is killed": (jobs.die, {}, "ProcessDied: the process of the body was killed by signal 9"),
    "fails": (f"{HERE}:fail_with_half_a_pair", {}, "ValueError: half \\ud800 pair"),
    "is unprintable": (f"{HERE}:raise_unprintable", {}, f"Unprintable: {NO_MESSAGE}"),
    "was never made": (f"{HERE}:raise_rate_limited", {}, "RateLimited: busy\n  a RetryLater without"),
    "tells nothing": (f"{HERE}:raise_closed", {}, "Closed: closed\n  a RetryLater without"),
    "has bytes": (f"{HERE}:raise_syntax_error", {}, "SyntaxError: x (f, line 1)"),
    "returns an object": (jobs.not_json, {}, "NotJson: node 'bad' returned what cannot be stored: a value of type"),
    "yields": (f"{HERE}:yields", {}, "NotJson: node 'bad' returned a generator"),
    "is not there": ("tests.engine.jobs:removed", {}, "MissingJob: the job of node 'bad'"),
}


def raise_unprintable() -> None:
    raise Unprintable


def test_whatever_happens_in_a_process_is_recorded_and_the_next_body_finds_one(sqlite_engine: Engine) -> None:
    for what, (job, args, message) in IN_A_PROCESS.items():
        w = Builder(what, on_failure="finish")
        w.node("bad", job=job, args=args, isolation="process")
        w.node("good", job=jobs.same, args={"item": 1}, isolation="process", depends_on=None)
        run = sqlite_engine.run(w, check=False, wait=20)
        assert str(run.node("bad").error)[: len(message)] == message
        assert run.output("good") == 1


def raise_rate_limited() -> None:
    raise RateLimited("busy")


def raise_closed() -> None:
    raise Closed


def raise_syntax_error() -> None:
    raise SyntaxError("x", ("f", 1, 1, b"text"))  # type: ignore[arg-type]


def fail_with_half_a_pair() -> None:
    raise ValueError("half \ud800 pair")


def test_the_traceback_of_a_process_begins_in_the_body(sqlite_engine: Engine) -> None:
    w = Builder("fails")
    w.node("fail", job=jobs.fail, isolation="process")
    error = sqlite_engine.run(w, check=False).node("fail").error
    assert error is not None
    assert error.traceback is not None
    assert "raise ValueError(message)" in error.traceback
    assert "stepwell/runner" not in error.traceback


def test_an_output_larger_than_a_store_can_hold_fails_its_attempt_alone(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt, "MAX_OUTPUT", 1_000_000)
    w = Builder("huge", on_failure="finish")
    w.node("huge", job=jobs.large, args={"size": 1_000_001})
    w.node("fine", job=jobs.large, args={"size": 1_000}, depends_on=None)
    run = engine.run(w, check=False)
    assert run.node("fine").status == "COMPLETED"
    assert "'huge' returned 1000003 bytes; at most 1000000 can be stored" in str(run.node("huge").error)


@pytest.mark.parametrize("kind", ["thread", "loop"])
def test_an_error_that_cannot_be_formatted_still_tells_where_it_was_raised(kind: str) -> None:
    error = error_of(kind, RAISED["a SyntaxError with bytes"][0])
    assert error.traceback is not None
    assert error.traceback.splitlines()[-2:] == ["    raise error", "SyntaxError: x (f, line 1)"]


def test_a_traceback_of_any_length_is_kept_short(engine: Engine) -> None:
    class Long(Workflow):
        @step
        def bad(self) -> None:
            raise ValueError("x" * 1_000_000)

    error = engine.run(Long(), check=False).node("bad").error
    assert error is not None
    assert len(error.message) == 16_000
    assert len(error.traceback or "") <= 16_000


def test_a_traceback_that_is_too_long_keeps_its_end(engine: Engine) -> None:
    class Fails(Workflow):
        message: str

        @step
        def fail(self) -> None:
            raise ValueError(self.message)

    def error_of(message: str) -> NodeError:
        error = engine.run(Fails(message=message), check=False).node("fail").error
        assert error is not None
        return error

    assert error_of("short").traceback.startswith("Traceback (most recent call last)")
    error = error_of("beginning " + "x" * 2 * MAX_TRACEBACK + " the end")
    assert len(error.traceback) == MAX_TRACEBACK
    assert error.traceback.startswith("... ")
    assert error.traceback.rstrip().endswith(" the end")
    assert error.message.startswith("beginning xxx")
    assert len(error.message) == MAX_TRACEBACK
