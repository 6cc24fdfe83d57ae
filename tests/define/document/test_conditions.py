"""Conditions of documents: expressions in braces, checked with the document."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from stepwell import Engine
from stepwell.define.document import Document
from stepwell.errors import DocumentError

PAGE = Path(__file__).parents[3] / "docs" / "branching.md"
CHECK = {"id": "check", "handler": "compute", "config": {"expression": "input.total > 9"}}


def document(**more: Any) -> dict[str, Any]:
    review = {"id": "review", "handler": "transform", "config": {"template": "reviewed"}, "dependencies": ["check"]}
    return {"name": "order", "nodes": [CHECK, review | more]}


@pytest.mark.parametrize(("total", "shipped"), [(20, "shipped, approved"), (5000, "shipped, reviewed")])
def test_the_document_of_the_page_takes_both_ways(total: int, shipped: str) -> None:
    (text,) = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    with Engine("memory://") as engine:
        assert engine.run(Document.parse(text, form="yaml"), input={"total": total}).output("ship")["result"] == shipped


@pytest.mark.parametrize(
    ("when", "path", "problem"),
    [
        ("check.result", "$.nodes[1].when", "expected exactly one expression in {{ }}"),
        ("{{ check.result }} and more", "$.nodes[1].when", "expected exactly one expression in {{ }}"),
        ("{{ check.result }}{{ check.result }}", "$.nodes[1].when", "the condition is wrong"),
        ("{{ check. }}", "$.nodes[1].when", "the condition is wrong"),
        ("{{ chek.result }}", "$.nodes[1].when", "did you mean 'check'?"),
        ("{{ review.result }}", "$.nodes[1].when", "names itself"),
        ("{{ check.reslt }}", "$.nodes[1].when", "which compute does not return"),
        (7, "$.nodes[1].when", "expected"),
    ],
)
def test_a_wrong_condition_is_a_problem_with_its_path(when: Any, path: str, problem: str) -> None:
    with pytest.raises(DocumentError) as refused:
        Document(document(when=when))
    assert [(each.path, problem in each.message) for each in refused.value.problems] == [(path, True)], refused.value


def test_join_and_when_are_part_of_the_canonical_form() -> None:
    made = Document(document(when="{{ check.result }}", join="all"))
    assert made.canonical["nodes"][1]["when"] == "{{ check.result }}"
    assert made.canonical["nodes"][1]["join"] == "all"
    assert "join" not in Document(document()).canonical["nodes"][1]
    assert Document(document(when="{{ check.result }}")).digest != Document(document()).digest
