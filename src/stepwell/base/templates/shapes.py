"""Expressions that differ only in the names they read are parsed once: `n41.result + 1` has the shape of `n42.result + 1`.

Checking a document of thousands of nodes is mostly parsing. A shape is an expression with numbered names. If it fails, the
expression is compiled and evaluated again under its own names, for the error message.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from .errors import TemplateError
from .frames import Evaluate, Reference, Scope

WORDS = frozenset({"true", "false", "none", "True", "False", "None", "not", "and", "or", "in", "is", "if", "else"})
"""Words of the language."""
_TOKEN = re.compile(
    r"""'[^'\\]*+(?:\\.[^'\\]*+)*+'|"[^"\\]*+(?:\\.[^"\\]*+)*+"|[0-9][\w.]*+|([A-Za-z_]\w*+)|\s++|.""",
    re.DOTALL | re.ASCII,
)
_MARKS = ("{{", "}}", "{%", "%}", "{#", "#}", "\n", "\r", "range")
_LONGEST = 500


class ExpressionShape(NamedTuple):
    """What all expressions of a shape have in common."""

    evaluate: Evaluate
    references: tuple[Reference, ...]
    may_be_null: bool


class Shaped(NamedTuple):
    """An expression: its shape, and the names it has."""

    shape: ExpressionShape
    names: Mapping[str, str]
    references: tuple[Reference, ...]


class Renamed:
    """A scope under the numbers of a shape."""

    __slots__ = ("_names", "_scope")

    def __init__(self, scope: Scope, names: Mapping[str, str]) -> None:
        self._scope = scope
        self._names = names

    def __getitem__(self, number: str) -> Any:
        return self._scope[self._names[number]]


def shaped(text: str, column: int = 1) -> Shaped | None:
    """The shape of an expression that begins at this column; None if it has none and must be compiled alone."""
    if len(text) > _LONGEST or any(mark in text for mark in _MARKS) or text[:1] in "-+" or text[-1:] in "-+":
        return None
    parts: list[str] = []
    names: dict[str, str] = {}
    places: dict[str, int] = {}
    before = ""
    tokens = [(match.group(), match.group(1), match.start()) for match in _TOKEN.finditer(text)]
    for place, (token, word, start) in enumerate(tokens):
        if (
            word is not None
            and word not in WORDS
            and before not in (".", "|", "is", "is not")
            and _is_name(tokens, place)
        ):
            number = f"v{len(names)}"
            names[number] = word
            places[number] = start
            parts.append(number)
        elif not token.isascii() and token[0] not in "'\"":
            return None  # `é` may be a letter of a name, which these tokens would tear apart
        else:
            parts.append(token)
        if not token.isspace():
            before = "is not" if (before, token) == ("is", "not") else token
    shape = _shape("".join(parts))
    if shape is None or any(each.name not in names for each in shape.references):  # `or` alone is read as a name
        return None
    references = tuple(
        each._replace(name=names[each.name], line=1, column=column + places[each.name]) for each in shape.references
    )
    return Shaped(shape, names, references)


def _is_name(tokens: list[tuple[str, str | None, int]], place: int) -> bool:
    """Whether a word is the name of a value, and not of an argument. That of a function is: calling one fails either way."""
    after = [token for token, _, _ in tokens[place + 1 : place + 4] if not token.isspace()]
    if not after:
        return True
    return after[0] != "=" or (len(after) > 1 and after[1] == "=")


@lru_cache(maxsize=2_000)
def _shape(text: str) -> ExpressionShape | None:
    from .expressions import compiled

    try:
        return ExpressionShape(*compiled(text))
    except TemplateError:
        return None  # the caller compiles it under its own names, and gets the error
