"""Filters of triggers for states: expressions over what is known of one state."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from ..base.templates import Expression, TemplateError, TextWithFields, compile_expression
from ..base.words import suggestion

NAMES = ("code_hash", "content_hash", "current_code_hash", "entity", "path", "state_type")
"""What a filter may name. All are texts; `entity` has fields as well: `id`, `path` and its variables."""
_IN_DOCUMENTS = {re.sub("_([a-z])", lambda match: match[1].upper(), name): name for name in NAMES}
"""The same by the names that they have in documents of pipelines: `codeHash`."""
_DOLLAR = re.compile(r"\$\.(?=[A-Za-z_])")


def without_dollars(expression: str) -> str:
    """Remove `$.` from a bare expression, as in `$.codeHash == currentCodeHash`."""
    return _DOLLAR.sub("", expression)


def compile_filter(text: str, variables: Collection[str] | None = None) -> Expression:
    """Compile a filter. TemplateError also if it names what no state has; `variables` are those of the entity, if known."""
    compiled = compile_expression(without_dollars(text))
    for name, field, line, column, *_ in compiled.references:
        problem = None
        if name not in (*NAMES, *_IN_DOCUMENTS):
            problem = f"a filter cannot name {name!r}; {suggestion(name, NAMES)}"
        elif field is not None and name != "entity":
            problem = f"{name} is a text and has no field {field!r}"
        elif field is not None and variables is not None and field not in (known := ("id", "path", *variables)):
            problem = f"the entity has no {field!r}; {suggestion(field, known)}"
        if problem is not None:
            error = TemplateError(problem, line=line, column=column)
            error.template = text
            raise error
    return compiled


def passes(condition: Expression | None, state: Mapping[str, str], current: str, variables: Mapping[str, str]) -> bool:
    """Whether a filter lets a state through. `current` is the present hash of the code that makes it."""
    if condition is None:
        return True
    fields = {**variables, "id": state["entity"], "path": state["path"]}
    scope: dict[str, Any] = {
        **state,
        "current_code_hash": current,
        "entity": TextWithFields(state["entity"], fields),
    }
    scope |= {other: scope[name] for other, name in _IN_DOCUMENTS.items()}
    return bool(condition.evaluate(scope))
