"""A text that is too long is cut, and no part of a secret is left at the cut, wherever the secret stands."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import stepwell
from stepwell import Builder, Context, Engine
from stepwell.base import masking
from stepwell.core.model.lines import PROGRESS
from stepwell.core.model.lines import Progress as Mark
from stepwell.engine.bodies.log_lines import LINE_UP_TO, MESSAGE_UP_TO, UNFINISHED_UP_TO
from stepwell.engine.bodies.raised import MAX_TRACEBACK
from stepwell.errors import ReplayMismatch
from tests.engine.test_lines import made, texts

SECRET = "hunter-4711-geheim"
PLACES = range(-len(SECRET) - 1, 2)
"""Where the secret begins, counted from a cut: before it, across it, after it."""


@pytest.fixture(autouse=True)
def only_secret(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(masking, "_values", set())
    monkeypatch.setattr(masking, "_pattern", None)
    monkeypatch.setattr(masking, "_longest", 0)
    stepwell.secret(SECRET)
    return


def leaks(text: str) -> list[str]:
    """Parts of the secret that are long enough to tell."""
    parts = (SECRET[start : start + 5] for start in range(len(SECRET) - 4))
    return [part for part in parts if part in text]


@pytest.mark.parametrize("cut", [LINE_UP_TO - 2_048, 3 * LINE_UP_TO - 2_048, LINE_UP_TO])
def test_in_a_long_line(cut: int) -> None:
    for place in PLACES:
        _, said = made()
        before = cut + place
        said.log(1, "INFO", 20, "x", "." * before + SECRET + "," * (3 * LINE_UP_TO - before - len(SECRET)))
        (text,) = texts(said.rest())
        assert not leaks(text)
        assert text.startswith("....")
        assert text.endswith(",,,,")


@pytest.mark.parametrize("cut", [UNFINISHED_UP_TO, LINE_UP_TO])
def test_in_a_line_that_is_written_in_pieces(cut: int) -> None:
    for place in PLACES:
        _, said = made()
        for piece in ("." * (cut + place), SECRET[:7], SECRET[7:], "," * cut):
            said.write(1, "stdout", piece)
        said.write(1, "stdout", "end\nnext\n")
        text, following = texts(said.rest())
        assert not leaks(text)
        assert following == "next"


def test_in_the_message_of_progress() -> None:
    for place in PLACES:
        _, said = made()
        said.progress(1, 2, "." * (MESSAGE_UP_TO + place) + SECRET + ",")
        (mark,) = [Mark.of(op.data) for op in said.take(10) if op.kind == PROGRESS]
        assert mark.message is not None
        assert not leaks(mark.message)
        assert len(mark.message) <= MESSAGE_UP_TO


def test_a_text_that_fits_is_kept_whole_and_one_character_more_is_counted() -> None:
    _, said = made()
    said.log(1, "INFO", 20, "x", "." * LINE_UP_TO)
    said.log(1, "INFO", 20, "x", "." * (LINE_UP_TO + 1))
    whole, cut = texts(said.rest())
    assert whole == "." * LINE_UP_TO
    assert cut == "." * (LINE_UP_TO - 2_048) + " ... 1 characters left out ... " + "." * 2_048


def fail(before: int, after: int) -> None:
    raise ValueError("." * before + SECRET + "," * after)


def test_in_the_message_and_the_traceback_of_an_error() -> None:
    with Engine("memory://") as engine:
        for place in PLACES:
            w = Builder("failing", on_failure="finish")
            w.node("early", job=fail, args={"before": MAX_TRACEBACK + place, "after": 9}, depends_on=None)
            # Of a traceback the end is kept; after the message there is a line end.
            w.node("late", job=fail, args={"before": 9, "after": MAX_TRACEBACK + place}, depends_on=None)
            run = engine.run(w, check=False)
            for node in run.nodes():
                told = str(node.attempts[0].error)
                assert "ValueError" in told
                assert not leaks(told)


def say(words: str) -> str:
    return "said"


def ask(ctx: Context, shift: int) -> None:
    for word in ASKED:
        ctx.effect("say", say, "." * (200 + shift) + SECRET + word + "," * 300)


ASKED: list[str] = []


@pytest.mark.parametrize("shift", range(-40, 5, 3))
def test_in_what_a_replay_shows_of_a_request(shift: int) -> None:
    with Engine("memory://") as engine:
        w = Builder("asking")
        w.node("body", job=ask, args={"shift": shift}, side_effects="recordable")
        ASKED[:] = ["a"]
        run = engine.run(w)
        for now in ([], ["a", "a"], ["b"]):
            ASKED[:] = now
            with pytest.raises(ReplayMismatch) as caught:
                run.replay()
            assert not leaks(str(caught.value))
