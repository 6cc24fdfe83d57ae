"""Words of messages: amounts with their units, long values cut, and which name may have been meant."""

from __future__ import annotations

import doctest

import pytest

from stepwell import reducers
from stepwell.base import clock, codec, commands, matching, networks, words
from stepwell.base.clock import MAX_SECONDS, SECOND, in_seconds, is_seconds, utc_text
from stepwell.base.words import LINE_UP_TO, MAX_COMPARED, MAX_MISSPELT, SHOWN_UP_TO

DURATIONS = {
    **{0: "0.00 s", 0.999: "1.00 s", 1: "1.0 s", 59.94: "59.9 s", 60: "1 m 00 s", 61.9: "1 m 01 s"},
    **{3_599: "59 m 59 s", 3_600: "1 h 00 m", 3_660: "1 h 01 m", 86_399: "23 h 59 m", 86_400: "1 d 00 h"},
    90_000: "1 d 01 h",
}


@pytest.mark.parametrize(
    "module", [clock, codec, commands, matching, networks, reducers, words], ids=lambda it: it.__name__
)
def test_the_examples_are_right(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


def test_a_duration_is_told_in_its_two_largest_units() -> None:
    assert {seconds: words.duration(seconds) for seconds in DURATIONS} == DURATIONS
    assert words.duration(None) == ""


def test_amounts_and_times() -> None:
    assert [words.count(number, "run") for number in (0, 1, 2, 1_000)] == ["0 runs", "1 run", "2 runs", "1,000 runs"]
    assert words.iso(None) is None
    assert words.iso(1_768_473_000 * SECOND + 7) == "2026-01-15T10:30:00.000007Z"
    assert utc_text(1_768_473_000) == "2026-01-15T10:30:00Z"
    assert in_seconds("1") == "1"


@pytest.mark.parametrize(
    ("value", "allowed", "positive"),
    [
        *((0, True, False), (0.0, True, False), (1e-9, True, True), (-1e-9, False, False), (True, False, False)),
        *((MAX_SECONDS, True, True), (MAX_SECONDS + 1, False, False), ("1", False, False), (None, False, False)),
        *((float("nan"), False, False), (float("inf"), False, False)),
    ],
)
def test_what_is_a_duration(value: object, allowed: bool, positive: bool) -> None:
    assert (is_seconds(value), is_seconds(value, positive=True)) == (allowed, positive)


def test_a_long_value_is_cut_and_one_that_fits_is_not() -> None:
    fits = "x" * (SHOWN_UP_TO - 2)
    assert words.shown(fits) == f"'{fits}'"
    assert words.shown(fits + "y") == f"'{fits}y..."
    line = "x" * LINE_UP_TO
    assert words.one_line(f" {line}\n") == line
    assert words.one_line(line + "y") == "x" * (LINE_UP_TO - 4) + " ..."
    assert len(words.briefly("x" * 1_000)) < 50
    assert "cannot be shown" in words.briefly([10**5_000])


class Loud(Exception):
    def __str__(self) -> str:
        raise ValueError


class Text(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "other"


class Odd(Exception):
    def __str__(self) -> str:
        return Text("text")


def test_an_exception_is_told_whatever_its_class_does() -> None:
    assert words.error_text(TimeoutError("no answer")) == "TimeoutError: no answer"
    assert words.message_of(Loud()) == "(no message: its __str__ raised ValueError)"
    assert type(words.message_of(Odd())) is str
    assert words.class_names(Odd) == [
        f"{__name__}.Odd",
        "builtins.Exception",
        "builtins.BaseException",
        "builtins.object",
    ]
    assert words.error_line("a.MissingJob", "there is none\ndo this\n  or that") == "a.MissingJob: there is none"
    assert words.error_line("a.Other", "one\ntwo") == "a.Other: one two"
    assert words.error_line("a.Other", "") == "a.Other"
    assert words.ways_out("a.MissingJob", "there is none\ndo this\n  or that") == ["do this", "or that"]
    assert words.ways_out("a.Other", "one\ntwo") == []


def test_the_nearest_name_is_looked_for_where_that_takes_no_time() -> None:
    assert words.nearest("retyr", ["timeout", "retry"]) == "retry"
    assert words.nearest("zzz", ["timeout", "retry"]) is None
    assert words.nearest("x" * MAX_MISSPELT, ["x" * MAX_MISSPELT]) is not None
    assert words.nearest("x" * (MAX_MISSPELT + 1), ["x" * MAX_MISSPELT]) is None
    many = ["retry", *(["a" * 100] * (MAX_COMPARED // 500 - 1))]
    assert words.nearest("retyr", many) == "retry"
    assert words.nearest("retyr", [*many, "a" * 100]) is None
    assert words.suggestion("x", ["b", "c", "d"], most=2) == "there are b, c"
    assert words.suggestion("x", ["b", "c"], "none of these") == "none of these"
