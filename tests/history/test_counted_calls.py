"""A replay asks for the same calls as often as they were recorded: equal ones in their order, none more, none less."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import count

import pytest

from stepwell import Context, Engine, Retry, Run, Workflow, step
from stepwell.errors import ReplayMismatch

ASKED: list[str] = []
"""What the body asks for, call by call: a word is asked of `poll`, `now` of the clock; `?` goes before what may fail."""
ANSWERS = count()


def poll(word: str) -> int:
    return next(ANSWERS)


class Polling(Workflow):
    @step(side_effects="recordable")
    def ask(self, ctx: Context) -> list[int | str | None]:
        return [_asked(ctx, word) for word in ASKED]


class AskingOnly(Workflow):
    @step(side_effects="recordable")
    def ask(self, ctx: Context) -> None:
        for word in ASKED:
            _asked(ctx, word)


def _asked(ctx: Context, word: str) -> int | str | None:
    if word.startswith("?"):
        with suppress(Exception):
            return _asked(ctx, word[1:])
        return None
    return ctx.now().isoformat() if word == "now" else ctx.effect("poll", poll, word)


@pytest.fixture(autouse=True)
def nothing_asked() -> Iterator[None]:
    yield
    ASKED.clear()


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine("memory://") as engine:
        yield engine


def recorded(engine: Engine, words: str, workflow: type[Workflow] = AskingOnly) -> Run:
    ASKED[:] = words.split()
    return engine.run(workflow())


def test_equal_calls_get_their_own_answers_in_order(engine: Engine) -> None:
    run = recorded(engine, "a b a a now b now", Polling)
    answers = run.output("ask")
    assert len({answers[place] for place in (0, 1, 2, 3, 5)}) == 5
    report = run.replay()
    assert report.effects == 5
    assert [each.occurrence for each in run.effects() if each.node == "ask" and each.name == "poll"] == [0, 0, 1, 2, 1]
    assert [each.index for each in run.effects() if each.node == "ask" and each.name == "poll"] == [0, 1, 2, 3, 4]


class Booking(Workflow):
    @step(side_effects="recordable", retry=Retry(2, base_delay=0.001))
    def book(self, ctx: Context) -> list[int]:
        found = [ctx.effect("poll", poll, word, durable=True) for word in ASKED[: 3 + 2 * (ctx.attempt - 1)]]
        if ctx.attempt == 1:
            raise ValueError("not yet")
        return found


def test_durable_calls_are_each_served_once_in_order_and_then_made(engine: Engine) -> None:
    ASKED[:] = ["a", "b", "a", "a", "b"]
    first = next(ANSWERS) + 1
    run = engine.run(Booking())
    assert run.output("book") == [first, first + 1, first + 2, first + 3, first + 4]
    second = [each for each in run.effects("book") if each.attempt == 2]
    assert [each.from_attempt for each in second] == [1, 1, 1, None, None]


def test_the_order_of_different_calls_may_change(engine: Engine) -> None:
    run = recorded(engine, "a b a c")
    ASKED[:] = ["c", "a", "a", "b"]
    assert run.replay().effects == 4


@pytest.mark.parametrize(
    ("then", "now", "effect", "what", "diff"),
    [
        ("a a", "a", 1, "'poll' was recorded and is not asked for any more", ["request: "]),
        ("a b c", "", 0, "'poll' was recorded and is not asked for any more", ["request: ", "and 2 more"]),
        ("a b c", "b", 0, "'poll' was recorded and is not asked for any more", ["request: ", "and 1 more"]),
        ("a b c", "c b", 0, "'poll' was recorded and is not asked for any more", ["request: "]),
        ("", "a", 0, "'poll' is asked for and was not recorded", ["request: "]),
        ("a", "a a", 1, "'poll' is asked for and was not recorded", ["request: "]),
        ("a b", "a c", 1, "'poll' is asked with another request", ['$.args[0]: recorded "b", now "c"']),
        ("a b c", "a x c", 1, "'poll' is asked with another request", ['$.args[0]: recorded "b", now "x"']),
        ("a b c", "c x", 1, "'poll' is asked with another request", ['$.args[0]: recorded "b", now "x"']),
        ("a b", "b a x", 2, "'poll' is asked for and was not recorded", ["request: "]),
        ("now", "now now", -1, "it is asked once more than the 1 times that were recorded", []),
        ("now now now", "now", -1, "it was asked 3 times, now 1 times", []),
        ("now", "", -1, "it was asked 1 times, now 0 times", []),
        ("a now", "", 0, "'poll' was recorded and is not asked for any more", ["request: "]),
    ],
)
def test_what_is_asked_more_or_less_often_is_named(
    engine: Engine, then: str, now: str, effect: int, what: str, diff: list[str]
) -> None:
    run = recorded(engine, then)
    ASKED[:] = now.split()
    with pytest.raises(ReplayMismatch) as caught:
        run.replay()
    found = caught.value
    assert (found.node, found.attempt, found.effect, found.what) == ("ask", 1, effect, what)
    assert len(found.diff) == len(diff)
    assert all(line.startswith(expected) for line, expected in zip(found.diff, diff, strict=True))


def test_the_first_mismatch_is_told_although_the_body_goes_on(engine: Engine) -> None:
    run = recorded(engine, "a b c now")
    ASKED[:] = ["?x", "?y", "b", "now", "now"]
    with pytest.raises(ReplayMismatch, match="effect 0: 'poll' is asked with another request"):
        run.replay()
