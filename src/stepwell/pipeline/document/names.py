"""`$` expressions, as in `{{$.dates.path}}`.

    {{ $.NAME.path }}     the path that the node NAME finds or writes, for the present entity
    {{ $.NAME.id }}       the entity: the variables joined by `/`
    {{ $.NAME.VARIABLE }} one variable of the entity
    {{ $.entity.id }}     the id of the present entity; `.path` is the path by which it was found
    {{ $.NAME.content }}  the content of the state; only in configs

`$.` may be left out: `$.a.b` is `a.b` in the expression language of documents. Expressions in patterns (`input`, `output`,
`path`) are replaced when the document is read; those in a `config`, and in the `content` to write, for each entity.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...base.templates import TemplateError, compile_template
from ...triggers.filters import without_dollars as expression_without_dollars
from ..patterns.pattern import Pattern

STORED = "stored:"
"""What the home of a saved pipeline begins with: `stored:auto-blog@3`."""
_BRACES = re.compile(r"\{[{%].*?(?:[}%]\}|\Z)", re.DOTALL)


def without_dollars(value: Any) -> Any:
    """Remove `$.` from the expressions in a template, or in the templates of a config."""
    if isinstance(value, str):
        return _BRACES.sub(lambda found: expression_without_dollars(found[0]), value)
    if isinstance(value, dict):
        return {key: without_dollars(each) for key, each in value.items()}
    if isinstance(value, list):
        return [without_dollars(each) for each in value]
    return value


def pattern_scope(pattern: Pattern) -> dict[str, str]:
    """What the pattern of a node may say about another node."""
    variables = {name: f"{{{name}}}" for name in pattern.variables}
    return {**variables, "path": pattern.text.removesuffix("/"), "id": "/".join(variables.values())}


def as_pattern(text: str, scope: Mapping[str, Mapping[str, str]]) -> str:
    """Render a template to a pattern. TemplateError if it refers to something that is not known yet."""
    rendered = compile_template(without_dollars(text)).render(scope)
    if not isinstance(rendered, str):
        raise TemplateError(f"expected a path, got {rendered!r}")
    return rendered
