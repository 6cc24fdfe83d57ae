"""Masks secrets in all output of bodies before it leaves the worker.

The values are global to the process: a body in any thread may print any of them.
"""

from __future__ import annotations

import re
import string
import threading
from collections.abc import Iterable
from typing import NamedTuple

from ..errors import InputError

MASK = "***"
SHORTEST = 4
"""Characters. Masking less would blacken words that have nothing to do with the secret."""

_lock = threading.Lock()
_values: set[str] = set()
_pattern: _Patterns | None = None
_longest = 0


def secret(value: str) -> str:
    """Never show this value: in log lines, prints and errors of bodies it is stored as `***`. Returns the value.

        TOKEN = stepwell.secret(os.environ["PAYMENT_TOKEN"])

    Outputs are data and stay as they are. An empty value hides nothing and is only returned.
    """
    if not isinstance(value, str):
        raise InputError(f"a secret must be a string, not {type(value).__name__}")
    if value and len(value) < SHORTEST:
        raise InputError(f"a secret of {len(value)} characters cannot be masked: expected at least {SHORTEST}")
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


def _compiled() -> _Patterns | None:
    """The pattern of all values; None while there are none. Made at its first use: many are named one after another."""
    global _longest, _pattern  # noqa: PLW0603
    if _pattern is not None or not _values:
        return _pattern
    with _lock:
        # The lines of a value (a key file) that are long enough are masked alone, too.
        lines = {line.strip() for value in _values if len(value) <= MAX_IN_LINES for line in value.splitlines()}
        texts = {*_values, *(line for line in lines if len(line) >= 2 * SHORTEST)}
        _pattern = _Patterns(sorted(texts, key=len, reverse=True))
        _longest = _pattern.longest
        return _pattern


def hidden() -> tuple[str, ...]:
    """The values that are masked here, for a process that must mask them too."""
    return tuple(_values)


def holds_secret(text: str) -> bool:
    """Whether there is anything to mask in it, or in a value that this is the JSON of."""
    pattern = _compiled()
    return pattern is not None and (pattern.search(text) is not None or pattern.search(_read_once(text)) is not None)


def mask(text: str) -> str:
    pattern = _compiled()
    if pattern is None:
        return text
    masked = pattern.sub(MASK, text)
    read = _read_once(masked)
    return masked if read is masked or pattern.search(read) is None else pattern.sub(MASK, read)


def mask_any_case(text: str) -> str:
    """The same for what is written in any case on its way: names of headers, hosts, content types."""
    text = mask(text)
    for value in _values.copy() if text else ():
        if len(value) <= len(text) and value.lower() in text.lower():
            text = re.sub(re.escape(value), MASK, text, flags=re.IGNORECASE)
    return text


def longest() -> int:
    """Characters of the longest text that is masked: so near the place where a text was cut, one may have lost its end."""
    _compiled()
    return _longest


class _SecretForm(NamedTuple):
    """A secret or a part of it, however it is written."""

    pattern: str
    longest: int
    """The most characters it takes, unless it is both escaped and quoted for a URL."""


LONG, END = 1_024, 256
"""A text of more than LONG characters is found by its first and its last END: a pattern of all of it takes long to compile."""
MAX_IN_LINES = 16 * 1024
"""Characters of a value whose lines are masked alone, too: each of them is looked for at each place of a text."""


class _Patterns:
    """What finds all secrets; `sub` and `search` are those of a pattern."""

    def __init__(self, texts: list[str]) -> None:
        """`texts`: the longest first."""
        self._long = [_Long(text) for text in texts if len(text) > LONG]
        forms = [_form(text) for text in texts if len(text) <= LONG]
        self._short = re.compile("|".join(form.pattern for form in forms)) if forms else None
        self.longest = max([form.longest for form in forms] + [long.longest for long in self._long])

    def search(self, text: str) -> object:
        has_short = self._short is not None and self._short.search(text) is not None
        return True if has_short or any(long.head.search(text) for long in self._long) else None

    def sub(self, mask: str, text: str) -> str:
        for long in self._long:
            text = long.sub(mask, text)
        return text if self._short is None else self._short.sub(mask, text)


class _Long:
    """A long text: from where it begins up to its end, if that follows near enough."""

    def __init__(self, text: str) -> None:
        head, tail = _form(text[:END]), _form(text[-END:])
        self.head, self._tail = re.compile(head.pattern), re.compile(tail.pattern)
        self._least = len(text) - 2 * END
        """Characters between the two. A text that repeats itself may have its end before that, too."""
        self._between = _form(text[END:-END]).longest
        self.longest = head.longest + self._between + tail.longest

    def sub(self, mask: str, text: str) -> str:
        parts: list[str] = []
        done = 0
        tail = self._tail.search(text)
        while (head := self.head.search(text, done)) is not None:
            while tail is not None and tail.start() < head.end() + self._least:
                tail = self._tail.search(text, head.end() + self._least)
            parts += text[done : head.start()], mask
            is_whole = tail is not None and tail.start() - head.end() <= self._between
            done = tail.end() if tail is not None and is_whole else head.end()
        return "".join((*parts, text[done:])) if parts else text


_LEVELS = 4
"""How often a text may have been escaped: JSON in a field of JSON, in a line that shows it, and once more when it is kept."""
_NEVER_ESCAPED = frozenset(string.ascii_letters + string.digits + "-._")
_UNUSUAL = re.compile(
    r"""(?: (?:\\|%(?:25){0,3}5[cC]){1,16}+
        (?: u00(?P<u>[2-7][0-9a-fA-F]) | x(?P<x>[2-7][0-9a-fA-F]) | U000000(?P<U>[2-7][0-9a-fA-F]) )
    | %(?:25){0,3}(?P<percent>[2-7][0-9a-fA-F])
    | (?:&|&amp;)\#(?: [xX]0{0,6}(?P<hex>[2-7][0-9a-fA-F]) | 0{0,6}(?P<decimal>[0-9]{2,3}) ); )""",
    re.VERBOSE,
)
"""A character written as an escape, in the notations that the pattern of a secret has for those that need it."""
_SHORT = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}
_ENTITIES = {
    "&": ("&amp;",),
    "<": ("&lt;",),
    ">": ("&gt;",),
    '"': ("&quot;", "&#34;", "&#x22;"),
    "'": ("&apos;", "&#39;", "&#x27;"),
}
_PARTS = re.compile(r"(\\*)([^\\]?)")


def _read_once(text: str) -> str:
    """The text with characters in place of escapes that nothing requires, as in `\\u0053` for S: any JSON, URL or HTML may be
    written so. The same object if there are none.
    """
    if "\\" not in text and "%" not in text and "&" not in text:
        return text
    return _UNUSUAL.sub(_character, text) if _UNUSUAL.search(text) else text


def _character(escape: re.Match[str]) -> str:
    kind = escape.lastgroup
    if kind is None:
        return escape[0]
    code = int(escape[kind], 10 if kind == "decimal" else 16)
    character = chr(code)
    return character if character in _NEVER_ESCAPED else escape[0]


def _form(value: str) -> _SecretForm:
    """A value as plain text, in Python, in (nested) JSON, in a URL or form, or in HTML.

    Decided for each character: which of them are escaped, and in hexadecimal digits of which case, is another choice in every
    library, and in a URL another in each of its parts.
    """
    parts = [_part(len(run), character) for run, character in _PARTS.findall(value) if run or character]
    start = r"(?<!\\)" if value.startswith("\\") else ""  # or each of many would be tried as the first of them
    return _SecretForm(start + "".join(part.pattern for part in parts), sum(part.longest for part in parts))


def _part(backslashes: int, character: str) -> _SecretForm:
    """The pattern of this many backslashes, followed by a character.

    Backslashes in a text are taken all at once, never in another way: otherwise there would be very many ways to try.
    """
    plain, escaped = _plain(character), _escaped(character)
    written = f"(?:{_RUN}(?:{'|'.join((*escaped, *plain))})|{'|'.join(plain)})" if escaped else "".join(plain)
    longest = max(len("%25252541") * len(character.encode("utf-8", "surrogatepass")), 2**_LEVELS) if escaped else 1
    if not backslashes:
        return _SecretForm(written, longest)
    most = (backslashes + 1) * 2**_LEVELS
    run = f"{_BACKSLASH}{{{backslashes},{most}}}+(?:{'|'.join((*escaped, *plain))})"
    return _SecretForm(f"(?:(?:{_RUN}u005[cC]){{{backslashes}}}{written}|{run})", most + longest)


def _plain(character: str) -> list[str]:
    """How a character is written without a backslash."""
    if not character or character in _NEVER_ESCAPED:
        return [character and re.escape(character)]
    encoded = character.encode("utf-8", "surrogatepass")
    forms = [*_ENTITIES.get(character, ()), "".join(map(_percent, encoded)), re.escape(character)]
    if character == " ":
        forms.append(r"\+")
    if not character.isascii():  # in bytes that are no text, each byte is read as a character
        forms.append(re.escape(encoded.decode("latin-1")))
    return forms


def _escaped(character: str) -> list[str]:
    """How it is written after a backslash, besides."""
    if not character or character in _NEVER_ESCAPED:
        return []
    code, units = ord(character), character.encode("utf-16-be", "surrogatepass").hex()
    escapes = [_RUN.join(f"u{_digits(units[at : at + 4])}" for at in range(0, len(units), 4))]
    if code < 0x100:
        escapes.append(f"x{_digits(f'{code:02x}')}")
    if code > 0xFFFF:
        escapes.append(f"U{_digits(f'{code:08x}')}")
    if character in _SHORT:
        escapes.append(_SHORT[character])
    return escapes


def _percent(byte: int) -> str:
    return f"%(?:25){{0,{_LEVELS - 1}}}{_digits(f'{byte:02x}')}"


def _digits(digits: str) -> str:
    """Hexadecimal digits of either case."""
    return "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in digits)


_BACKSLASH = rf"(?:\\|{_percent(0x5C)})"
_RUN = f"{_BACKSLASH}{{1,{2**_LEVELS}}}+"
"""What an escape begins with."""
