"""Templates that read ancestors which may be skipped: they say what stands for them, which is checked with the document."""

from __future__ import annotations

from typing import Any

import pytest

from stepwell import Engine
from stepwell.core.graph import from_frozen, to_frozen
from stepwell.define.document import Document
from stepwell.define.document.checking import with_templates_read
from stepwell.errors import DocumentError, GraphError
from stepwell.handlers import Handlers

CHECK = {"id": "check", "handler": "compute", "config": {"expression": "input.total > 9"}}


def text(node: str, template: str, *after: str, **more: Any) -> dict[str, Any]:
    return {"id": node, "handler": "transform", "config": {"template": template}, "dependencies": [*after]} | more


REVIEW = text("review", "reviewed", "check", when="{{ check.result }}")


def document(*nodes: dict[str, Any]) -> Document:
    return Document({"name": "order", "nodes": [CHECK, REVIEW, *nodes]})


def problems(*nodes: dict[str, Any]) -> list[tuple[str, str]]:
    with pytest.raises(DocumentError) as refused:
        document(*nodes)
    return [(each.path, each.message) for each in refused.value.problems]


ADVICE = "'review' may be skipped: say what stands for it with review.result | default(...)"


@pytest.mark.parametrize(
    "template",
    [
        "{{ review.result }}",
        "it was {{ review.result }}",
        "{{ check.result | default(review.result) }}",
        "{{ review.result | default('not') }} {{ review.result }}",
        "{% for word in review.result %}{{ word }}{% endfor %}",
    ],
)
def test_a_template_that_reads_a_node_that_may_be_skipped_is_a_problem(template: str) -> None:
    assert problems(text("ship", template, "check", "review")) == [("$.nodes[2].config.template", ADVICE)]


@pytest.mark.parametrize(
    "template",
    [
        "{{ review.result | default('not reviewed') }}",
        "{{ review.result | upper | d('not reviewed') }}",
        "{{ review.result if review.result is defined else 'not reviewed' }}",
        "{% if review.result is defined %}{{ review.result }}{% else %}not reviewed{% endif %}",
    ],
)
def test_one_that_says_what_stands_for_it_runs_either_way(template: str) -> None:
    made = document(text("ship", template, "check", "review"))
    with Engine("memory://") as engine:
        shipped = [engine.run(made, input={"total": total}).output("ship")["result"] for total in (1, 10)]
    assert [each.lower() for each in shipped] == ["not reviewed", "reviewed"]


def test_the_advice_names_the_field_that_is_read() -> None:
    (found,) = problems(text("ship", "{{ review.output }}", "check", "review"))
    assert "review.output | default(...)" in found[1]


def test_a_condition_that_reads_a_node_that_may_be_skipped_is_a_problem() -> None:
    ship = text("ship", "shipped", "check", "review", when="{{ review.result == 'reviewed' }}")
    assert problems(ship) == [("$.nodes[2].when", ADVICE)]


def test_a_node_that_runs_only_after_it_reads_it_without_default() -> None:
    document(text("ship", "{{ review.result }}", "review"))
    document(text("ship", "{{ review.result }}", "check", "review", join="all"))
    document(text("pack", "packed", "review"), text("ship", "{{ review.result }}", "pack"))


def test_ancestors_further_up_may_be_skipped_too() -> None:
    pack = text("pack", "packed", "check", "review")
    assert problems(pack, text("ship", "{{ review.result }}", "pack")) == [("$.nodes[3].config.template", ADVICE)]


@pytest.mark.parametrize("whole", ["{{ check }}", "{{ not check }}", "{{ check == 1 }}"])
def test_a_node_by_itself_is_no_value(whole: str) -> None:
    problem = "check is a node: write check.output, or check.result for its main field"
    assert problems(text("ship", "shipped", "check", when=whole)) == [("$.nodes[2].when", problem)]
    assert problems(text("ship", whole, "check")) == [("$.nodes[2].config.template", problem)]


def test_an_edited_graph_is_checked_in_the_same_way() -> None:
    form = to_frozen(document(text("ship", "shipped", "check", "review")).graph, 0)
    form["nodes"]["ship"]["args"]["template"] = "{{ review.result }}"
    form["nodes"]["review"]["when"] = "{{ check }}"
    with pytest.raises(GraphError) as refused:
        with_templates_read(from_frozen(form), Handlers())
    whole = "check is a node: write check.output, or check.result for its main field"
    assert [(each.path, each.message) for each in refused.value.problems] == [("$.nodes.review.when", whole)]

    form["nodes"]["review"]["when"] = "{{ check.result }}"
    with pytest.raises(GraphError) as refused:
        with_templates_read(from_frozen(form), Handlers())
    assert [(each.path, each.message) for each in refused.value.problems] == [("$.nodes.ship.args.template", ADVICE)]
