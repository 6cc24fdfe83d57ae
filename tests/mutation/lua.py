"""Changes to Lua, found by its tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(
    r"""(?P<comment>--\[\[.*?\]\]|--[^\n]*)
    |(?P<text>'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*")
    |(?P<word>[A-Za-z_]\w*)
    |(?P<number>\d[\w.]*)
    |(?P<sign>\.\.\.?|<=|>=|==|~=|[-+<>])
    """,
    re.VERBOSE | re.DOTALL,
)
_SWAPS = {
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "~=",
    "~=": "==",
    "+": "-",
    "and": "or",
    "or": "and",
    "true": "false",
    "false": "true",
    "not": "",
}
_CALL = re.compile(r"^[ \t]+([a-z_][\w.]*\([^\n]*\))$", re.MULTILINE)
_CONDITION = re.compile(r"\bif ([^\n]+?) then\b")


def changed_lua(source: str) -> Iterator[tuple[int, int, str]]:
    """Each change as what to put in place of the characters from start to end."""
    for token in _TOKEN.finditer(source):
        text = token.group()
        if token.lastgroup == "number" and len(text) == 1:
            yield token.start(), token.end(), str(int(text) + 1)
        elif token.lastgroup in ("word", "sign") and text in _SWAPS:
            yield token.start(), token.end(), _SWAPS[text]
    for call in _CALL.finditer(source):
        if call.group().count("(") == call.group().count(")"):
            yield call.start(1), call.end(1), ""
    for condition in _CONDITION.finditer(source):
        yield condition.start(1), condition.end(1), "false"
        yield condition.start(1), condition.end(1), "true"
