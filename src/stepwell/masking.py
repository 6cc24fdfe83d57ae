"""Values that must not be shown: masked in everything a body says before it leaves the worker.

The values are those of the process, as what is printed is: a body in any thread, loop or process may print any of them.
"""

from __future__ import annotations

import re
import string
import threading
from collections.abc import Iterable
from typing import NamedTuple

from .errors import InputError

MASK = "***"
SHORTEST = 4
"""Characters. Masking less would blacken words that have nothing to do with the secret."""

_lock = threading.Lock()
_values: set[str] = set()
_pattern: re.Pattern[str] | None = None
_longest = 0


def secret(value: str) -> str:
    """Never show this value: in log lines, prints and errors of bodies it is stored as `***`. Returns the value.

        TOKEN = stepwell.secret(os.environ["PAYMENT_TOKEN"])

    Outputs are data and stay as they are. An empty value hides nothing and is only returned.
    """
    if not isinstance(value, str):
        raise InputError(f"a secret must be a string, not {type(value).__name__}")
    if value and len(value) < SHORTEST:
        raise InputError(f"a secret of {len(value)} characters cannot be masked: at least {SHORTEST} are needed")
    if value:
        hide([value])
    return value


def hide(values: Iterable[str]) -> None:
    """Mask these values from now on."""
    global _pattern  # noqa: PLW0603  # one pattern for the process, replaced whole
    with _lock:
        if not _values.issuperset(values := tuple(values)):
            _values.update(values)
            _pattern = None


def _compiled() -> re.Pattern[str] | None:
    """The pattern of all values; None while there are none. Made when it is needed: many are named one after another."""
    global _longest, _pattern  # noqa: PLW0603
    if _pattern is not None or not _values:
        return _pattern
    with _lock:
        texts = sorted({text for value in _values for text in (value, *_lines(value))}, key=len, reverse=True)
        forms = [_form(text) for text in texts]
        _longest = max(form.longest for form in forms)
        _pattern = re.compile("|".join(form.pattern for form in forms))
        return _pattern


def hidden() -> tuple[str, ...]:
    """The values that are masked here, for a process that must mask them too."""
    return tuple(_values)


def holds_secret(text: str) -> bool:
    """Whether there is anything to mask in it, or in a value that this is the JSON of."""
    pattern = _compiled()
    return pattern is not None and pattern.search(text) is not None


def mask(text: str) -> str:
    pattern = _compiled()
    return text if pattern is None else pattern.sub(MASK, text)


def longest() -> int:
    """Characters of the longest text that is masked: so near the place where a text was cut, one may have lost its end."""
    _compiled()
    return _longest


def _lines(value: str) -> list[str]:
    """Of a value of several lines, a key file, each that is long enough to be known by itself."""
    lines = [line.strip() for line in value.splitlines()]
    return [line for line in lines if len(line) >= 2 * SHORTEST]


class _Form(NamedTuple):
    """A secret or a part of it, however it is written."""

    pattern: str
    longest: int
    """Characters that it takes at most, in what is not both escaped and quoted for a URL."""


_LEVELS = 4
"""How often a text may have been escaped: JSON in a field of JSON, in a line that shows it, and once more when it is kept."""
_NEVER_ESCAPED = frozenset(string.ascii_letters + string.digits + "-._")
_MAY_FOLLOW_A_BACKSLASH = frozenset("\"'/")
_SHORT = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}
_ENTITIES = {
    "&": ("&amp;",),
    "<": ("&lt;",),
    ">": ("&gt;",),
    '"': ("&quot;", "&#34;", "&#x22;"),
    "'": ("&apos;", "&#39;", "&#x27;"),
}
_PARTS = re.compile(r"(\\*)([^\\]?)")


def _form(value: str) -> _Form:
    """A value as it is, in Python, in JSON that is itself in JSON, in a URL or a form, in HTML.

    Decided for each character: which of them are escaped, and in hexadecimal digits of which case, is another choice in every
    library, and in a URL another in each of its parts.
    """
    parts: list[_Form] = []
    for backslashes, character in _PARTS.findall(value):
        if backslashes:
            parts.append(_backslashes(len(backslashes)))
        if character:
            parts.append(_character(character, after_backslash=bool(backslashes)))
    return _Form("".join(part.pattern for part in parts), sum(part.longest for part in parts))


def _character(character: str, *, after_backslash: bool) -> _Form:
    if character in _NEVER_ESCAPED:
        return _Form(re.escape(character), 1)
    encoded = character.encode("utf-8", "surrogatepass")
    written = [*_ENTITIES.get(character, ()), "".join(map(_percent, encoded)), re.escape(character)]
    if character in _MAY_FOLLOW_A_BACKSLASH and not after_backslash:
        written = [f"{_BACKSLASH}{{0,{2**_LEVELS - 1}}}(?:{'|'.join(written)})"]
    written += _escapes(character)
    if character == " ":
        written.append(r"\+")
    if not character.isascii():  # of bytes that are no text each is looked at as a character
        written.append(re.escape(encoded.decode("latin-1")))
    return _Form(f"(?:{'|'.join(written)})", max(len("%25252541") * len(encoded), 2**_LEVELS))


def _backslashes(count: int) -> _Form:
    """So many, and those that escape what follows. Each by itself, they would be looked for in very many ways."""
    most = (count + 1) * 2**_LEVELS
    return _Form(f"(?:{_BACKSLASH}{{{count},{most}}}|(?:{_ESCAPE}u005[cC]){{{count}}})", most)


def _escapes(character: str) -> list[str]:
    """Those that begin with a backslash."""
    code, units = ord(character), character.encode("utf-16-be", "surrogatepass").hex()
    found = ["".join(f"{_ESCAPE}u{_digits(units[at : at + 4])}" for at in range(0, len(units), 4))]
    if code < 0x100:
        found.append(f"{_ESCAPE}x{_digits(f'{code:02x}')}")
    if code > 0xFFFF:
        found.append(f"{_ESCAPE}U{_digits(f'{code:08x}')}")
    if character in _SHORT:
        found.append(_ESCAPE + _SHORT[character])
    return found


def _percent(byte: int) -> str:
    return f"%(?:25){{0,{_LEVELS - 1}}}{_digits(f'{byte:02x}')}"


def _digits(digits: str) -> str:
    """Hexadecimal digits of either case."""
    return "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in digits)


_BACKSLASH = rf"(?:\\|{_percent(0x5C)})"
_ESCAPE = f"{_BACKSLASH}{{1,{2 ** (_LEVELS - 1)}}}"
"""What an escape begins with."""
