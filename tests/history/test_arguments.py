"""What a call is made with, as far as the bytecode of the frame that makes it tells."""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from stepwell.history.guarding.arguments import UNKNOWN, arguments_of

WORDS = ["a", "b"]


def called(function: Callable[[], Any]) -> tuple[Any, ...] | None:
    """What `operator.truth` is called with; what is no argument of it is refused by Python after we have looked."""
    seen: list[tuple[Any, ...] | None] = []

    def watch(frame: FrameType, event: str, subject: Any) -> None:
        if event == "c_call" and subject is operator.truth:
            seen.append(arguments_of(frame))

    sys.setprofile(watch)
    try:
        function()
    except TypeError:
        pass
    finally:
        sys.setprofile(None)
    (found,) = seen
    return found


def no_arguments() -> None:
    operator.truth()  # type: ignore[call-arg]


def local() -> None:
    value = "local"
    operator.truth(value)


def closed_over() -> Callable[[], None]:
    value = "outer"

    def inner() -> None:
        operator.truth(value)

    return inner


def one_of_two() -> None:
    operator.truth("a" if WORDS else "b")


def unpacked() -> None:
    operator.truth(*WORDS)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (no_arguments, ()),
        (lambda: operator.truth(7), (7,)),
        (lambda: operator.truth(None), (None,)),
        (lambda: operator.truth(1, 2, "last"), (UNKNOWN, UNKNOWN, "last")),  # type: ignore[call-arg]
        (lambda: operator.truth(WORDS), (WORDS,)),
        (lambda: operator.truth(len), (len,)),
        (lambda: operator.truth(os.path), (os.path,)),
        (lambda: operator.truth(os.path.sep), (os.path.sep,)),
        (lambda: operator.truth(WORDS.__class__), (UNKNOWN,)),  # finding it may run code
        (lambda: operator.truth(WORDS + WORDS), (UNKNOWN,)),
        (lambda: operator.truth(len(WORDS)), (UNKNOWN,)),
        (lambda: operator.truth(WORDS[0]), (UNKNOWN,)),
        (local, ("local",)),
        (closed_over(), ("outer",)),
        (one_of_two, (UNKNOWN,)),
        (unpacked, ("a", "b")),
        (lambda: operator.truth(*WORDS, *WORDS), None),
        (lambda: operator.truth(*range(2)), None),
    ],
)
def test_what_is_told(function: Callable[[], Any], arguments: tuple[Any, ...] | None) -> None:
    assert called(function) == arguments
