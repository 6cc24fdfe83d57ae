"""Regular expressions that users write, matched in time that grows linearly with the text (RE2).

Python's own `re` tries every way in which a text might match. For some patterns that takes longer than anybody waits, and no
other thread runs meanwhile. So whatever comes from a document, a schema or a pipeline is matched here.

>>> bool(compiled("^[a-z]+$").search("abc")), bool(compiled("a*a*a*a*a*a*b").search("a" * 1_000))
(True, False)
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

MAX_PATTERN = 10_000
MAX_PROGRAM = 4_000
"""Instructions of a compiled pattern: in the worst case each of them looks at each character."""
_MEMORY = 1024 * 1024
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(Z)|.)", re.DOTALL)


class PatternError(ValueError):
    """A text is no regular expression, or one of a kind that cannot be matched in linear time."""


class Matcher:
    """A compiled pattern."""

    __slots__ = ("_regex", "groups", "size")

    def __init__(self, pattern: str) -> None:
        import re2

        if len(pattern) > MAX_PATTERN:
            raise PatternError(f"it has {len(pattern):,} characters; at most {MAX_PATTERN:,} are allowed")
        options = re2.Options()
        options.max_mem, options.log_errors = _MEMORY, False
        try:
            self._regex: Any = re2.compile(_ESCAPE.sub(_spelled_for_re2, pattern), options)
        except re2.error as error:
            raise PatternError(_in_our_words(error)) from None
        except UnicodeEncodeError:
            raise PatternError("it holds half of a surrogate pair") from None
        self.groups: int = self._regex.groups
        self.size: int = self._regex.programsize
        """Instructions, each of which may look at each character of a text."""
        if self.size > MAX_PROGRAM:
            raise PatternError("it is too large: repeat less, or name fewer classes of characters")

    def search(self, text: str) -> Any:
        """A match anywhere in the text, or None."""
        return self._found(self._regex.search, text)

    def match(self, text: str) -> Any:
        """A match at the beginning of the text, or None."""
        return self._found(self._regex.match, text)

    @staticmethod
    def _found(find: Any, text: str) -> Any:
        try:
            return find(text)
        except UnicodeEncodeError:  # half of a surrogate pair, which no pattern describes
            return None


@lru_cache(maxsize=500)
def compiled(pattern: str) -> Matcher:
    """The matcher of a pattern; PatternError says why there is none."""
    return Matcher(pattern)


def _spelled_for_re2(escape: re.Match[str]) -> str:
    """Two escapes that Python has and RE2 spells in another way."""
    if escape[1]:
        return rf"\x{{{escape[1]}}}"
    return r"\z" if escape[2] else escape[0]


def _in_our_words(error: Exception) -> str:
    said = error.args[0] if error.args else ""
    words = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    if "(?" in words or "escape sequence: \\" in words:
        return f"{words} (patterns are matched in linear time, without lookaround and references to groups)"
    return words
