"""docs/expressions.md says what the language does: every line of its tables, and its Python, is run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from stepwell.base import codec
from stepwell.base.templates import NodeOutput, TemplateError, compile_template
from stepwell.base.templates.filters import FILTERS, TESTS
from stepwell.base.templates.limits import MAX_BITS, MAX_CHARACTERS, MAX_ITEMS, MAX_NESTING, MAX_TEMPLATE, MAX_WORK

PAGE = (Path(__file__).parents[3] / "docs" / "expressions.md").read_text("utf-8")
ROWS = re.findall(r"^\| `(.*)` \| (?:`(.*)`|error: (.*)) \|$", PAGE, re.MULTILINE)
SCOPE: dict[str, Any] = {
    "input": {"city": "Oslo", "limit": 3, "note": None},
    "fetch": NodeOutput({"result": {"title": "Tides", "tags": ["sea", "moon"], "items": 2}, "status_code": 200}),
    "prices": NodeOutput({"result": [{"name": "tea", "price": 4}, {"name": "rum", "price": 12.5}]}),
    "count": NodeOutput(7),
    "run": {"id": "r-1"},
}


@pytest.mark.parametrize(("template", "gives", "error"), ROWS, ids=[row[0] for row in ROWS])
def test_a_line_of_a_table(template: str, gives: str, error: str) -> None:
    template = template.replace(r"\|", "|")
    if error:
        with pytest.raises(TemplateError, match=re.escape(error)):
            compile_template(template).render(SCOPE)
    else:
        assert codec.text(compile_template(template).render(SCOPE)) == gives


def test_every_filter_and_test_has_its_line() -> None:
    assert len(ROWS) > 80
    templates = " ".join(row[0] for row in ROWS)
    assert [name for name in FILTERS if not re.search(rf"\| {name}\b", templates)] == []
    named = PAGE.partition("## Tests")[2].partition("| template")[0]
    assert [name for name in TESTS if not re.search(rf"\b{name}\b", named)] == []


def test_the_limits_are_told_as_they_are() -> None:
    told = PAGE.partition("## Limits")[2]
    for limit in (MAX_TEMPLATE, MAX_NESTING, MAX_WORK, MAX_CHARACTERS, MAX_ITEMS, MAX_BITS):
        assert f"| {limit:,} " in told


def test_its_python_runs() -> None:
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(code, {})
