"""The syntax: Jinja's own parser, in its sandboxed environment without loader, globals, filters or extensions.

Only its syntax tree is used. What a tree means is in `expressions.py` and `statements.py`; Jinja never makes Python code of it,
so there is nothing of Python that a template could reach.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from jinja2 import StrictUndefined, TemplateSyntaxError, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from .errors import TemplateError
from .limits import MAX_TEMPLATE, spend_parsing

_TAG = re.compile(r"\{[{%#]")
_ENDS = {"{{": "}}", "{%": "%}", "{#": "#}"}
MAX_SHOWN = 80
_RETURNS = ("\ue00d", "\ue00e", "\ue00f")


@cache
def _environment() -> ImmutableSandboxedEnvironment:
    made = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, keep_trailing_newline=True, optimized=False, cache_size=0
    )
    for table in (made.globals, made.filters, made.tests):
        table.clear()
    return made


def parse_template(text: str) -> nodes.Template:
    """The syntax tree of a template; TemplateError with its position if it has none."""
    check_length(text)
    if text.endswith("{#"):  # which Jinja takes for nothing
        raise TemplateError("missing end of comment tag", line=text.count("\n") + 1, column=1)
    line_feeds_only, stands_for_return = _with_returns(text)
    tree = _parsed(line_feeds_only)
    if stands_for_return:
        try:
            for data in tree.find_all(nodes.TemplateData):
                data.data = data.data.replace(stands_for_return, "\r")
        except RecursionError:
            raise TemplateError("it is nested too deeply") from None
    return tree


def parse_expression(text: str) -> nodes.Expr:
    """The syntax tree of one expression."""
    check_length(text)
    tree = _parsed("{{ " + text + " }}")
    body = tree.body
    if len(body) == 1 and isinstance(body[0], nodes.Output) and len(body[0].nodes) == 1:
        expression = body[0].nodes[0]
        if not isinstance(expression, nodes.TemplateData):
            return expression
    raise TemplateError("expected one expression, without {{ }}", line=1, column=1)


def check_length(text: str) -> None:
    if len(text) > MAX_TEMPLATE:
        raise TemplateError(f"it has {len(text):,} characters; at most {MAX_TEMPLATE:,} are allowed")


def _parsed(text: str) -> nodes.Template:
    spend_parsing(sum(end - begin for begin, end in _tags(text)))
    try:
        return _environment().parse(text)
    except TemplateSyntaxError as error:
        line = error.lineno or 1
        raise TemplateError(_in_our_words(error.message or "it is not understood"), line=line, column=1) from None
    except RecursionError:
        raise TemplateError("it is nested too deeply") from None
    except (ValueError, OverflowError, SyntaxError) as error:  # a number of 5,000 digits, half of an escape
        raise TemplateError(f"it is not understood: {error}") from None


_UNKNOWN_TAG = re.compile(r"(?:Encountered u|U)nknown tag '(\w+)'")


def _in_our_words(message: str) -> str:
    unknown = _UNKNOWN_TAG.match(message)
    if unknown:
        return f"there is no statement {unknown[1]!r}; there are for, if and raw"
    return message[:1].lower() + message[1:].rstrip(".")


def _with_returns(text: str) -> tuple[str, str]:
    """The text, with something else for every carriage return outside of tags, which Jinja would make a line feed."""
    if "\r" not in text:
        return text, ""
    unused = next((each for each in _RETURNS if each not in text), "")
    parts: list[str] = []
    done = 0
    for begin, end in _tags(text):
        parts += text[done:begin].replace("\r", unused), text[begin:end]
        done = end
    return "".join((*parts, text[done:].replace("\r", unused))), unused


def _tags(text: str) -> Iterator[tuple[int, int]]:
    """Where the tags of a template begin and end."""
    at, without_end = 0, set[str]()
    while (begin := _TAG.search(text, at)) is not None:
        end = -1 if begin[0] in without_end else text.find(_ENDS[begin[0]], begin.end())
        if end < 0:  # nor is there one later on: it is not sought again, so that each text takes linear time
            without_end.add(begin[0])
        else:
            yield begin.start(), end + 2
        at = begin.start() + 1 if end < 0 else end + 2


def described(node: Any) -> str:
    """An expression as it is written, if it is a name with fields; else nothing."""
    parts: list[str] = []
    while isinstance(node, nodes.Getattr | nodes.Getitem) and len(parts) <= MAX_SHOWN:
        if isinstance(node, nodes.Getattr):
            parts.append(f".{node.attr}")
        else:
            parts.append(f"[{node.arg.value!r}]" if isinstance(node.arg, nodes.Const) else "[...]")
        node = node.node
    parts.append(str(node.name) if isinstance(node, nodes.Name) else "")
    return briefly("".join(reversed(parts)))


def briefly(words: str) -> str:
    return words if len(words) <= MAX_SHOWN else words[: MAX_SHOWN - 3] + "..."


def says_null(only: nodes.Node) -> bool:
    """Whether who wrote it has said what stands for null."""
    if isinstance(only, nodes.Const | nodes.CondExpr):
        return True
    return isinstance(only, nodes.Filter) and only.name in ("default", "d")
