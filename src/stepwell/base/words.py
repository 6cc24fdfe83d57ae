"""Words for messages: amounts, times, values, errors."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Collection
from datetime import UTC, datetime
from itertools import islice
from typing import overload

from .clock import SECOND

LINE_UP_TO = 300
SHOWN_UP_TO = 80
MAX_MISSPELT, MAX_COMPARED = 60, 500_000
"""Characters of a name, and times those of all names there are, for which the nearest is looked for: half a second at worst."""
_SCALES = ((3_600, "m", 60, "s", 1), (86_400, "h", 3_600, "m", 60), (math.inf, "d", 86_400, "h", 3_600))


def duration(seconds: float | None) -> str:
    """
    >>> [duration(seconds) for seconds in (0.04, 3.21, 75, 3_700, 200_000)]
    ['0.04 s', '3.2 s', '1 m 15 s', '1 h 01 m', '2 d 07 h']
    """
    if seconds is None:
        return ""
    if seconds < 60:
        return f"{seconds:.2f} s" if seconds < 1 else f"{seconds:.1f} s"
    large, size, small, part = next(scale[1:] for scale in _SCALES if seconds < scale[0])
    return f"{int(seconds // size)} {large} {int(seconds % size // part):02} {small}"


@overload
def iso(time: int) -> str: ...
@overload
def iso(time: int | None) -> str | None: ...
def iso(time: int | None) -> str | None:
    """A time of the store as machines read it: `2026-01-15T10:30:02.000000Z`."""
    if time is None:
        return None
    return datetime.fromtimestamp(time / SECOND, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def shown(value: object) -> str:
    """A value as an error message shows it: never long.

    >>> shown("x"), shown(10**5_000)
    ("'x'", 'a value of type int that cannot be shown')
    """
    try:
        text = repr(value)
    except Exception:  # a whole number of too many digits, or a `__repr__` that raises
        return f"a value of type {type(value).__name__} that cannot be shown"
    return text if len(text) <= SHOWN_UP_TO else f"{text[:SHOWN_UP_TO]}..."


def briefly(value: object) -> str:
    """The same for data, of which only a few items are shown."""
    try:
        return reprlib.repr(value)
    except ValueError:  # a whole number of too many digits in it
        return shown(value)


def message_of(error: BaseException) -> str:
    """The message of an exception. It is code of users: its `__str__` may raise, or return a subclass of str."""
    try:
        said = str(error)
        return said if type(said) is str else str.__str__(said)
    except BaseException as trouble:
        return f"(no message: its __str__ raised {short_name(type(trouble))})"


def error_text(error: BaseException) -> str:
    """`TimeoutError: no answer`."""
    return f"{short_name(type(error))}: {message_of(error)}"


def class_names(kind: type) -> list[str]:
    """`module.Name` of a class and its bases, its own first.

    >>> class_names(TimeoutError)[:2]
    ['builtins.TimeoutError', 'builtins.OSError']
    """
    return [_full_name(base) for base in type.__getattribute__(kind, "__mro__")]


def short_name(kind: type) -> str:
    """The name of a class, whatever its metaclass says."""
    return str(type.__getattribute__(kind, "__name__"))


def _full_name(kind: type) -> str:
    name = type.__getattribute__(kind, "__qualname__")
    try:
        return f"{type.__getattribute__(kind, '__module__')}.{name}"
    except BaseException:  # it has no module, or that is no text
        return f"?.{name}"


def error_line(kind: str, message: str) -> str:
    """An error in one line, without the advice about a missing job, which `ways_out` has."""
    text = message.partition("\n")[0] if kind.endswith("MissingJob") else message
    return one_line(f"{kind}: {text}" if text else kind)


def ways_out(kind: str, message: str) -> list[str]:
    """What the message of a missing job says can be done, line by line."""
    return [line.strip() for line in message.splitlines()[1:]] if kind.endswith("MissingJob") else []


def one_line(message: str) -> str:
    """A message in one line that is not too long; `show --traceback` has it whole."""
    text = " ".join(message.split())
    return text if len(text) <= LINE_UP_TO else f"{text[: LINE_UP_TO - 4]} ..."


def suggestion(name: object, known: Collection[str], otherwise: str | None = None, most: int = 40) -> str:
    """The name that was probably meant; if none is close, `otherwise`, or which names there are.

    >>> suggestion("retyr", ["retry", "timeout"]), suggestion("x", ["retry", "timeout"])
    ("did you mean 'retry'?", 'there are retry, timeout')
    """
    close = nearest(str(name), known)
    if close is not None:
        return f"did you mean {close!r}?"
    return f"there are {', '.join(islice(known, most))}" if otherwise is None else otherwise


def nearest(name: str, known: Collection[str]) -> str | None:
    """The known name that is most like this one, if one is. Among very many, or for a very long one, it is not looked for."""
    if len(name) > MAX_MISSPELT or len(name) * sum(map(len, known)) > MAX_COMPARED:
        return None
    from difflib import get_close_matches  # needed for errors only

    close = get_close_matches(name, known, n=1)
    return close[0] if close else None
