"""Changes to statements for the database, in the text of a string as it stands in the source."""

from __future__ import annotations

import re
from collections.abc import Iterator

_STATEMENT = re.compile(r"\b(SELECT|INSERT INTO|UPDATE|DELETE FROM)\b")
_TOKEN = re.compile(
    r"""(?P<comment>--[^\n]*)
    |(?P<text>'[^']*')
    |(?P<field>\{[^{}]*\})
    |(?P<name>[:?]?[A-Za-z_][\w.]*)
    |(?P<number>\d+)
    |(?P<sign>->>?|<=|>=|<>|\|\||[<>=()+,*-])
    """,
    re.VERBOSE,
)
_SWAPS = {
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "=": "<>",
    "<>": "=",
    "+": "-",
    "-": "+",
    "OR": "AND",
    "DESC": "ASC",
    "MIN": "max",
    "MAX": "min",
    "DISTINCT": "",
    "EXISTS": "NOT EXISTS",
}
_ENDS_A_TERM = {
    "AND",
    "OR",
    "WHERE",
    "GROUP",
    "ORDER",
    "LIMIT",
    "RETURNING",
    "THEN",
    "ELSE",
    "END",
    "SET",
    "FROM",
    "ON",
}
_ENDS_A_TERM |= {"SELECT", "UNION", "JOIN", "CROSS", "LEFT", "WHEN", "AS", "DO", "HAVING"}

Token = tuple[str, str, int, int]
"""Kind, text in capitals, start and end."""


def is_statement(source: str) -> bool:
    return _STATEMENT.search(source) is not None


def changed_statements(source: str) -> Iterator[tuple[int, int, str]]:
    """Each change as what to put in place of the characters from start to end."""
    tokens: list[Token] = [
        (found.lastgroup or "", found.group().upper(), found.start(), found.end()) for found in _TOKEN.finditer(source)
    ]
    tokens = [token for token in tokens if token[0] not in ("comment", "text")]
    assigning = False
    for at, (kind, text, start, end) in enumerate(tokens):
        if text in ("SET", "WHERE", "FROM", "WHEN", "ON", "SELECT"):
            assigning = text == "SET"
        if kind == "number" and len(text) == 1:
            yield start, end, str(int(text) + 1)
        elif text == "AND" and not _is_of_between(tokens, at):
            yield start, _end_of_term(tokens, at), ""
            yield start, end, "OR"
        elif text in ("IS", "NOT") and tokens[at + 1 : at + 2] and tokens[at + 1][1] in ("NOT", "NULL"):
            yield from _null(tokens, at)
        elif text == "=" and assigning and not _is_inside(tokens, at):
            continue  # `SET a = b`
        elif text in _SWAPS and not (text == "EXISTS" and tokens[at - 1][1] in ("NOT", "IF")):
            yield start, end, _SWAPS[text]


def _null(tokens: list[Token], at: int) -> Iterator[tuple[int, int, str]]:
    """`IS NULL` and `IS NOT NULL`; a `NOT` before anything else is left to the term it stands in."""
    _, text, _, end = tokens[at]
    if text == "IS" and tokens[at + 1][1] == "NULL":
        yield end, end, " NOT"
    elif text == "IS" and tokens[at + 1][1] == "NOT":
        yield end, tokens[at + 1][3], ""


def _is_of_between(tokens: list[Token], at: int) -> bool:
    return any(text == "BETWEEN" for _, text, _, _ in tokens[max(0, at - 4) : at])


def _is_inside(tokens: list[Token], at: int) -> bool:
    """Whether it stands in parentheses."""
    signs = [text for _, text, _, _ in tokens[:at]]
    return signs.count("(") > signs.count(")")


def _end_of_term(tokens: list[Token], at: int) -> int:
    """Where the term after this AND ends."""
    depth, last = 0, tokens[at][3]
    for _, text, _, end in tokens[at + 1 :]:
        if depth == 0 and (text in _ENDS_A_TERM or text in (")", ",")):
            break
        depth += (text == "(") - (text == ")")
        last = end
    return last
