"""What an expression may cost. The limits are counts, not times: a thread cannot be interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from .errors import TemplateError

MAX_TEMPLATE = 100_000
"""Characters of one template or expression."""
MAX_NESTING = 100
"""Levels of brackets, operators and statements in one template."""
MAX_WORK = 1_000_000
"""Evaluated parts of one rendering, of all templates of a node: a loop costs its body with every turn, a filter what it looks
at. About half a second."""
MAX_CHARACTERS = 10_000_000
"""Of any text that a rendering makes."""
MAX_ITEMS = 100_000
"""Of any list that a rendering makes."""
MAX_BITS = 128
"""Of a whole number that is calculated: 38 digits."""

_CHARACTERS_PER_UNIT = 16
"""Making or searching this much text takes about as long as one evaluated part."""


class Budget:
    """What is left for one rendering."""

    __slots__ = ("_passed", "left")

    def __init__(self) -> None:
        self.left = MAX_WORK
        self._passed: set[int] = set()

    def for_passed(self, value: Any) -> None:
        """A value of the scope is handed on as it is. That costs nothing, but a few characters can name it many times."""
        if type(value) is not str and type(value) is not list and type(value) is not dict:
            return
        if id(value) in self._passed:
            self.for_all_of(value)
        else:
            self._passed.add(id(value))

    def spend(self, work: int) -> None:
        self.left -= work
        if self.left < 0:
            raise TemplateError(f"it takes more than {MAX_WORK:,} steps: loop over less, or do this in a job")

    def for_text(self, length: int) -> None:
        """Text of this length is about to be made, or searched."""
        if length > MAX_CHARACTERS:
            raise TemplateError(f"a text of {length:,} characters; at most {MAX_CHARACTERS:,} are allowed")
        self.spend(length // _CHARACTERS_PER_UNIT)

    def for_items(self, count: int) -> None:
        """A list of this length is about to be made."""
        if count > MAX_ITEMS:
            raise TemplateError(f"a list of {count:,} items; at most {MAX_ITEMS:,} are allowed")
        self.spend(count)

    def for_all_of(self, value: Any) -> None:
        """All of a value is about to be looked at."""
        waiting = [value]
        while waiting:
            each = waiting.pop()
            if isinstance(each, str):
                self.spend(1 + len(each) // _CHARACTERS_PER_UNIT)
            elif isinstance(each, list):
                self.spend(1 + len(each))
                waiting += each
            elif isinstance(each, dict):
                self.spend(1 + 2 * len(each))
                waiting += each
                waiting += each.values()


_allowed: ContextVar[list[int] | None] = ContextVar("_allowed", default=None)
"""The characters that may still be parsed here; None if any number may."""


@contextmanager
def parsing_at_most(characters: int) -> Iterator[None]:
    """Limit what is parsed inside of this block, in characters between braces: of templates, each with its own limit, there may
    be many.
    """
    token = _allowed.set([characters])
    try:
        yield
    finally:
        _allowed.reset(token)


def spend_parsing(characters: int) -> None:
    """This many characters are about to be parsed, which takes about 20 µs each."""
    allowed = _allowed.get()
    if allowed is not None:
        allowed[0] -= characters
        if allowed[0] < 0:
            raise TemplateError("the templates before it are too much already: use shorter ones, or jobs")
