"""`default` stands for what is missing or null, and hides no error of what is below it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from stepwell.base.templates import TemplateError, compile_expression

MISSING = [
    *(
        "input.missing",
        "input.missing.deeper",
        "input.number.x",
        "input.none",
        "input.none.x",
        "input.list[9]",
        "nothing",
    ),
    *("input.list['x']", "input.missing + 1", "input.missing | upper", "[] | first", "{'a': 1}.b", "input.text.x"),
    *("input.list | join(input.missing)", "input.list[input.missing]", "-input.missing", "range(3)[7]"),
]
WRONG = {
    "1 // 0": "division by zero",
    "input.number + 'a'": "cannot add",
    "'x' | int": "is no whole number",
    "{'a': 1 // 0}.a": "division by zero",
    "[1 // 0] | first": "division by zero",
    "input.missing | default(1 // 0)": "division by zero",
    "9 ** 99999": "too large",
    "input.text | round": "round",
    "(1 // 0) if input.number else 2": "division by zero",
}
THERE: dict[str, Any] = {"0": 0, "false": False, "''": "", "[]": [], "{}": {}, "input.number": 1, "input.list": [1, 2]}
SCOPE: dict[str, Any] = {"input": {"number": 1, "none": None, "list": [1, 2], "text": "t"}}


@pytest.mark.parametrize("expression", MISSING)
def test_default_stands_for_what_is_missing_or_null(expression: str) -> None:
    for name in "default", "d":
        assert compile_expression(f"({expression}) | {name}('it')").render(SCOPE) == "it"
    assert compile_expression(f"({expression}) | default(input.list)").render(SCOPE) == [1, 2]
    assert compile_expression(f"({expression}) | default(input.also.missing) | default(7)").render(SCOPE) == 7
    with pytest.raises(TemplateError):
        compile_expression(f"({expression}) | default(input.also.missing)").render(SCOPE)


@pytest.mark.parametrize("expression", WRONG)
def test_default_hides_no_error_of_what_is_below_it(expression: str) -> None:
    for text in (f"({expression}) | default('it')", f"({expression}) | default('it', true)"):
        with pytest.raises(TemplateError, match=re.escape(WRONG[expression])):
            compile_expression(text).render(SCOPE)


@pytest.mark.parametrize("expression", THERE)
def test_default_leaves_what_is_there_and_replaces_what_is_empty_only_if_told_to(expression: str) -> None:
    value = THERE[expression]

    def render(text: str) -> Any:
        return compile_expression(text).render(SCOPE)

    assert render(f"({expression}) | default('it')") == value
    assert render(f"({expression}) | default('it', false)") == value
    assert render(f"({expression}) | default('it', empty=true)") == (value or "it")
    assert render(f"({expression}) | default(1 // 0)") == value, "what is not needed is not computed"
