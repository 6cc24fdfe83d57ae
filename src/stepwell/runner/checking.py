"""Values that people give: each is what is allowed, or an InputError that says what that is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..define import Workflow
from ..errors import InputError

MAX_SECONDS = 2**40
"""Some 35,000 years: in microseconds still a number that stores can keep."""
MAX_KEY = 1_000
_SHOWN = 80


def check_seconds(name: str, value: Any, *, positive: bool = False) -> None:
    """A number of seconds that is none (NaN), or so large that no store could keep it, is refused."""
    least = value > 0 if positive and _is_number(value) else _is_number(value) and value >= 0
    if not least or not value < MAX_SECONDS:
        what = "a positive number of seconds" if positive else "a number of seconds from 0"
        raise _wrong(name, value, f"{what}{',' if positive else ''} below 2**40 is needed")


def check_whole(name: str, value: Any, low: int, high: int, needed: str) -> None:
    """`low` and `high` are allowed."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise _wrong(name, value, f"{needed} is needed")


def check_text(name: str, value: Any) -> None:
    if isinstance(value, str) and 0 < len(value) <= MAX_KEY:
        try:
            value.encode()
            return
        except UnicodeEncodeError:
            pass
    raise _wrong(name, value, f"a text of 1 to {MAX_KEY:,} characters is needed")


def check_attempt(value: Any) -> None:
    if value is not None:
        check_whole("attempt", value, 1, 2**63 - 1, "a whole number from 1")


def checked_workflows(workflows: Any) -> list[type[Workflow]]:
    if isinstance(workflows, Iterable) and not isinstance(workflows, str | type):
        given = list(workflows)
        wrong = [each for each in given if not isinstance(each, type) or not issubclass(each, Workflow)]
        if not wrong:
            return given
        workflows = wrong[0]
    raise InputError(f"{_shown(workflows)} is no list of Workflow classes, which is needed, as in [OrderWorkflow]")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _wrong(name: str, value: object, needed: str) -> InputError:
    return InputError(f"{name}={_shown(value)}: {needed}")


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # a whole number of too many digits
        text = f"a {type(value).__name__} that is too long to show"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
