"""`$` expressions: what `{{$.dates.path}}` stands for.

    {{ $.NAME.path }}     the path of what the node NAME finds or writes, for the entity at hand
    {{ $.NAME.id }}       the entity: the variables joined by `/`
    {{ $.NAME.VARIABLE }} one variable of it
    {{ $.entity.id }}     the same of the entity at hand, `.path` that of what it was found by
    {{ $.NAME.content }}  what is in it; only in configs

`$.` may be left out: it is the one expression language of documents, in which `$.a.b` is `a.b`. In patterns (`input`, `output`,
`path`) they are put in when the document is read; in a `config`, and in the `content` that is written, for each entity.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...templates import TemplateError, compile_template
from ..patterns.pattern import Pattern

STORED = "stored:"
"""What the home of a saved pipeline begins with: `stored:auto-blog@3`."""
_DOLLAR = re.compile(r"\$\.(?=[A-Za-z_])")
_BRACES = re.compile(r"\{[{%].*?[}%]\}", re.DOTALL)


def without_dollars(text: str) -> str:
    """A template in the one expression language."""
    return _BRACES.sub(lambda found: _DOLLAR.sub("", found[0]), text)


def config_without_dollars(value: Any) -> Any:
    if isinstance(value, str):
        return without_dollars(value)
    if isinstance(value, dict):
        return {key: config_without_dollars(each) for key, each in value.items()}
    if isinstance(value, list):
        return [config_without_dollars(each) for each in value]
    return value


def expression_without_dollars(text: str) -> str:
    """The same of a bare expression: `$.codeHash == currentCodeHash`."""
    return _DOLLAR.sub("", text)


def pattern_scope(pattern: Pattern) -> dict[str, str]:
    """What can be said of a node in the pattern of another."""
    variables = {name: f"{{{name}}}" for name in pattern.variables}
    return {**variables, "path": pattern.text.removesuffix("/"), "id": "/".join(variables.values())}


def as_pattern(text: str, scope: Mapping[str, Mapping[str, str]]) -> str:
    """The pattern that a template of a document stands for; TemplateError if it says what cannot be known here."""
    rendered = compile_template(without_dollars(text)).render(scope)
    if not isinstance(rendered, str):
        raise TemplateError(f"it gives {rendered!r}, and a path is needed")
    return rendered
