"""What is wrong with a document is told all at once: where, what was found, what was expected, what may have been meant."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepwell import Document, DocumentError
from stepwell.define.document.document import FIELDS as TOP_FIELDS
from stepwell.define.document.nodes import FIELDS as NODE_FIELDS
from stepwell.handlers import Handlers

HANDLERS = Handlers()
FINE: dict[str, Any] = {"id": "a", "handler": "transform", "config": {"template": "x"}}


def problems(data: Any, **more: Any) -> list[Any]:
    text = data if isinstance(data, str | bytes) else json.dumps(data)
    with pytest.raises(DocumentError) as told:
        Document.parse(text, HANDLERS, **more)
    return list(told.value.problems)


def one(nodes: list[dict[str, Any]], **more: Any) -> Any:
    (found,) = problems({"name": "x", "nodes": nodes, **more})
    return found


def test_every_problem_is_told_with_path_line_column_and_what_was_meant() -> None:
    text = """{
  "name": "summarise",
  "nmae": 1,
  "nodes": [
    {"id": "fetch", "handler": "http_reqest", "config": {"url": "{{ input.url }}"}},
    {"id": "sum", "handler": "transform",
     "config": {"template": "{{ fecth.result }}"},
     "dependencies": ["fecth"], "timeout_seconds": 0}
  ]
}"""
    told = [(each.path, each.line, each.column, each.nearest) for each in problems(text)]
    assert told == [
        ("$.nmae", 3, 11, "name"),
        ("$.nodes[0].handler", 5, 32, "http_request"),
        ("$.nodes[1].config.template", 7, 29, "fetch"),
        ("$.nodes[1].dependencies", 8, 22, "fetch"),
        ("$.nodes[1].timeout_seconds", 8, 52, None),
    ]
    last = problems(text)[-1]
    assert (last.found, "positive number" in last.expected) == ("0", True)
    assert "`" not in str(last)
    assert problems(text)[2].as_json()["nearest"] == "fetch"


def test_a_template_that_names_nothing_alike_is_told_what_there_is() -> None:
    told = one([{**FINE, "config": {"template": "{{ something.else }}"}}]).message
    assert told.endswith("there are input, run and the ancestors of the node")


def test_the_problems_of_a_document_are_counted() -> None:
    def told(*nodes: dict[str, Any]) -> str:
        with pytest.raises(DocumentError) as raised:
            Document({"name": "x", "nodes": [*nodes]}, HANDLERS)
        return str(raised.value).splitlines()[0]

    assert told({**FINE, "queue": 1}).endswith(" has 1 problem:")
    assert told({**FINE, "queue": 1}, {**FINE, "id": "b", "queue": 1}).endswith(" has 2 problems:")


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({"template": {"{{ input.x }}": 1}}, ".template.{{ input.x }}"),
        ({"template": {"a": {"{{ input.x }}": 1}}}, ".template.a.{{ input.x }}"),
        ({"template": ["a", {"{{ input.x }}": 1}]}, ".template[1].{{ input.x }}"),
        ({"template": [[{"{{ input.x }}": 1}]]}, ".template[0][0].{{ input.x }}"),
    ],
)
def test_a_key_is_no_template_however_deep_it_is(config: dict[str, Any], path: str) -> None:
    found = one([{**FINE, "config": config}])
    assert (found.message, found.path.replace('["', ".").replace('"]', "")) == (
        "a key is never a template",
        f"$.nodes[0].config{path}",
    )


NODE: list[tuple[dict[str, Any], str, str]] = [
    ({"id": "a"}, "$.nodes[0]", "needs its handler"),
    ({"handler": "transform", "config": {"template": 1}}, "$.nodes[0]", "needs its id"),
    (FINE | {"id": "a-b"}, "$.nodes[0].id", "minus in a template"),
    (FINE | {"id": "1a"}, "$.nodes[0].id", "begins with no digit"),
    (FINE | {"id": 7}, "$.nodes[0].id", "an id of letters"),
    (FINE | {"id": ""}, "$.nodes[0].id", "an id of letters"),
    (FINE | {"id": "x" * 101}, "$.nodes[0].id", "at most 100"),
    (FINE | {"id": "ä"}, "$.nodes[0].id", "an id of letters"),
    (FINE | {"id": "input"}, "$.nodes[0].id", "'input' is reserved"),
    (FINE | {"id": "items"}, "$.nodes[0].id", "'items' is reserved"),
    (FINE | {"id": "__class__"}, "$.nodes[0].id", "'__class__' is reserved"),
    (FINE | {"id": "not"}, "$.nodes[0].id", "reserved"),
    (FINE | {"handler": 7}, "$.nodes[0].handler", "some text is needed, not 7"),
    (FINE | {"handler": "tranform"}, "$.nodes[0].handler", "did you mean 'transform'?"),
    (FINE | {"config": []}, "$.nodes[0].config", "an object is needed"),
    (FINE | {"config": {"template": 1, "tempalte": 2}}, "$.nodes[0].config.tempalte", "did you mean 'template'?"),
    (FINE | {"dependencies": "a"}, "$.nodes[0].dependencies", "write ['a']"),
    (FINE | {"dependencies": {"b": 1}}, "$.nodes[0].dependencies", "a list of ids is needed"),
    (FINE | {"dependencies": 7}, "$.nodes[0].dependencies", "a list of ids is needed, not 7"),
    (FINE | {"dependencies": [7]}, "$.nodes[0].dependencies[0]", "the id of a node is needed, not 7"),
    (FINE | {"dependencies": ["b"]}, "$.nodes[0].dependencies", "'b' is no node"),
    (FINE | {"timeout_seconds": -1}, "$.nodes[0].timeout_seconds", "positive number"),
    (FINE | {"timeout_seconds": "30"}, "$.nodes[0].timeout_seconds", "positive number"),
    (FINE | {"timeout_seconds": None}, "$.nodes[0].timeout_seconds", "not null"),
    (FINE | {"timeout": True}, "$.nodes[0].timeout", "not true"),
    (FINE | {"retry": 0}, "$.nodes[0].retry", "whole number of attempts"),
    (FINE | {"retry": {"max_attempts": 2, "delay": 1}}, "$.nodes[0].retry.delay", "retry has no field"),
    (FINE | {"retry": {}}, "$.nodes[0].retry.max_attempts", "at least 1"),
    (FINE | {"retry": {"max_attempts": 2, "base_delay": -1}}, "$.nodes[0].retry.base_delay", "seconds"),
    (FINE | {"on_lost": "retry"}, "$.nodes[0].on_lost", "one of rerun, interrupt"),
    (FINE | {"on_lost": "interrupt", "retry": 2}, "$.nodes[0].retry", "needs an explicit retry_on"),
    (FINE | {"queue": "a/b"}, "$.nodes[0].queue", "without '/'"),
    (FINE | {"side_effects": "none"}, "$.nodes[0].side_effects", "one of pure, recordable, opaque"),
    (FINE | {"name": ""}, "$.nodes[0].name", "printable"),
    (FINE | {"description": 7}, "$.nodes[0].description", "a text"),
    (FINE | {"depends_on": [], "dependencies": []}, "$.nodes[0].dependencies", "say it once"),
    (FINE | {"handlr": "x"}, "$.nodes[0].handlr", "did you mean 'handler'?"),
    (FINE | {"config": {"template": "{{ a.b"}}, "$.nodes[0].config.template", "the template is wrong"),
    (FINE | {"config": {"template": "{{ b.result }}"}}, "$.nodes[0].config.template", "names 'b', which is no node"),
    (FINE | {"config": {"template": "{{ a.result }}"}}, "$.nodes[0].config.template", "names itself"),
    (FINE | {"config": {"template": "{{ run.name }}"}}, "$.nodes[0].config.template", "run.name, which is not there"),
    (FINE | {"config": {"template": {"{{ x }}": 1}}}, '$.nodes[0].config.template["{{ x }}"]', "never a template"),
    (FINE | {"config": {"template": ["{{ 1 | uper }}"]}}, "$.nodes[0].config.template[0]", "did you mean 'upper'?"),
    (FINE | {"handler": "compute", "config": {"expression": "1 +"}}, "$.nodes[0].config.expression", "is wrong"),
    (FINE | {"handler": "compute", "config": {"expression": 7}}, "$.nodes[0].config.expression", "an expression"),
    (FINE | {"handler": "aggregate", "config": {"how": "some"}}, "$.nodes[0].config.how", "mapping"),
    (
        FINE | {"handler": "shop.jobs:charge", "config": {"key": "secret:a/b"}},
        "$.nodes[0].config.key",
        "names no secret",
    ),
    (FINE | {"handler": "shop.jobs:charge", "config": {"ctx": 1}}, "$.nodes[0].config.ctx", "by itself"),
]


@pytest.mark.parametrize(("node", "path", "message"), NODE, ids=[f"{each[1]} {each[2]}" for each in NODE])
def test_what_can_be_wrong_with_a_node(node: dict[str, Any], path: str, message: str) -> None:
    found = one([node])
    assert found.path == path
    assert message in found.message


TOP: list[tuple[Any, str, str]] = [
    ({}, "$", "a document needs its name"),
    ({"name": "x"}, "$", "no nodes"),
    ({"name": "x", "nodes": []}, "$.nodes", "no nodes"),
    ({"name": "x", "nodes": {}}, "$.nodes", "write a list of objects"),
    ({"name": "x", "nodes": [7]}, "$.nodes[0]", "an object is needed, not 7"),
    ([], "$", "an object with name and nodes is needed"),
    ("null", "$", "an object with name and nodes is needed"),
    ({"name": "a@1", "nodes": [FINE]}, "$.name", "without @"),
    ({"name": "a\x1b[2J", "nodes": [FINE]}, "$.name", "printable"),
    ({"name": "x", "nodes": [FINE], "on_failure": "stop"}, "$.on_failure", "one of fail_fast, finish, pause"),
    ({"name": "x", "nodes": [FINE], "timeout": 0}, "$.timeout", "positive number"),
    ({"name": "x", "nodes": [FINE], "tags": ["a", 7]}, "$.tags", "a list of texts"),
    ({"name": "x", "nodes": [FINE], "mode": "flow"}, "$.mode", "one of workflow, pipeline"),
    ({"name": "x", "nodes": [FINE], "input": {"type": "array"}}, "$.input.type", "is an object"),
    ({"name": "x", "nodes": [FINE], "input": {"propertys": {}}}, "$.input.propertys", "did you mean 'properties'?"),
    ({"name": "x", "nodes": [FINE], "description": []}, "$.description", "a text"),
]


@pytest.mark.parametrize(("data", "path", "message"), TOP, ids=[f"{each[1]} {each[2]}" for each in TOP])
def test_what_can_be_wrong_with_a_document(data: Any, path: str, message: str) -> None:
    found = problems(data)[0]
    assert found.path == path
    assert message in found.message


def test_a_cycle_is_printed() -> None:
    nodes = [FINE | {"id": each, "dependencies": [other]} for each, other in ("ab", "bc", "ca")]
    assert one(nodes).message == "there is a cycle: c -> b -> a -> c"


def test_a_node_cannot_depend_on_itself() -> None:
    assert "'a' depends on itself" in one([FINE | {"dependencies": ["a"]}]).message


def test_ids_must_differ() -> None:
    assert "'a' is the id of node 1 already" in one([FINE, FINE]).message


def test_a_template_may_name_ancestors_only() -> None:
    nodes = [FINE, FINE | {"id": "b", "config": {"template": "{{ a.result }}"}}]
    found = one(nodes)
    assert "names 'a', which is not one of its ancestors: add it to the dependencies of 'b'" in found.message
    above = [FINE, FINE | {"id": "b", "dependencies": ["a"]}, nodes[1] | {"id": "c", "dependencies": ["b"]}]
    document = Document({"name": "x", "nodes": above}, HANDLERS)
    assert document.graph.nodes["c"].needs == ("a",)


def test_a_field_that_a_handler_does_not_return_is_told() -> None:
    nodes = [FINE, FINE | {"id": "b", "dependencies": ["a"], "config": {"template": "{{ a.reslt }}"}}]
    assert "reads a.reslt, which transform does not return; did you mean 'result'?" in one(nodes).message
    unknown = [FINE | {"handler": "shop.jobs:load", "config": {}}, nodes[1]]
    assert Document({"name": "x", "nodes": unknown}, HANDLERS).graph  # nobody knows what a function returns


@pytest.mark.parametrize("template", ["{{ a }}", "{{ a.output }}", "{{ a.result }}"])
def test_the_output_of_every_handler_may_be_read(template: str) -> None:
    reading = FINE | {"id": "b", "dependencies": ["a"], "config": {"template": template}}
    assert Document({"name": "x", "nodes": [FINE, reading]}, HANDLERS).graph.nodes["b"].needs == ("a",)


def test_an_input_that_is_not_declared_is_told() -> None:
    nodes = [FINE | {"config": {"template": "{{ input.ulr }}"}}]
    schema = {"properties": {"url": {"type": "string"}}}
    assert "did you mean 'url'?" in one(nodes, input=schema).message
    assert Document({"name": "x", "nodes": nodes, "input": schema | {"additionalProperties": True}}, HANDLERS)
    assert Document({"name": "x", "nodes": nodes}, HANDLERS)


def test_what_holds_a_template_is_checked_when_it_is_rendered() -> None:
    node = FINE | {"handler": "aggregate", "config": {"how": "{{ input.how }}"}}
    assert Document({"name": "x", "nodes": [node]}, HANDLERS)


def test_nothing_is_imported_by_a_check() -> None:
    node = FINE | {"handler": "this_module_raises:now", "config": {}, "retry": {"max_attempts": 2, "retry_on": ["a.B"]}}
    assert Document({"name": "x", "nodes": [node]}, HANDLERS).graph.nodes["a"].job == "this_module_raises:now"


def test_data_that_is_no_json_is_told_and_what_was_checked_cannot_be_changed() -> None:
    with pytest.raises(DocumentError, match=r"\$\.nodes\[0\]\.config\.template: .*not a JSON number"):
        Document({"name": "x", "nodes": [FINE | {"config": {"template": float("nan")}}]}, HANDLERS)
    with pytest.raises(DocumentError, match="cannot be kept as JSON"):
        Document({"name": "x", "nodes": [FINE | {"config": {"template": object()}}]}, HANDLERS)
    config = {"template": ["a"]}
    document = Document({"name": "x", "nodes": [FINE | {"config": config}]}, HANDLERS)
    before = document.digest
    config["template"].append("b")
    assert Document.parse(document.content, HANDLERS).digest == before


def test_many_nodes_and_dependencies_are_refused() -> None:
    assert "at most 100,000 are allowed" in problems({"name": "x", "nodes": [1] * 100_001})[0].message
    wide = [{"id": f"n{i}", "handler": "aggregate", "dependencies": [f"n{j}" for j in range(i)]} for i in range(1_500)]
    assert "dependencies; at most 1,000,000" in problems({"name": "x", "nodes": wide})[0].message


WORDS = ["a", "b", "", "interrupt", "pure", "pause", "transform", "{{ a.result }}", "{{", "secret:X", "x:y"]
SHAPES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from(WORDS)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from([*NODE_FIELDS, *TOP_FIELDS, "template", "a", "{{ x }}"]), inner, max_size=5),
    ),
    max_leaves=20,
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(SHAPES, max_size=3), st.dictionaries(st.sampled_from(TOP_FIELDS), SHAPES, max_size=4), st.integers(0, 2)
)
def test_whatever_it_is_it_is_a_document_or_every_problem_is_told(
    nodes: list[Any], more: dict[str, Any], fine: int
) -> None:
    data = {"name": "x", **more, "nodes": [FINE | {"id": f"f{i}"} for i in range(fine)] + nodes}
    text = json.dumps(data, indent=1)
    told: list[Any] = []
    try:
        made = Document.parse(text, HANDLERS)
    except DocumentError as error:
        told = list(error.problems)
    if told:
        assert all(each.line is not None and each.path.startswith("$") for each in told)
        return
    assert made.graph.digest
    assert Document.parse(made.content, HANDLERS) == made


def test_problems_of_ten_thousand_nodes_are_all_told_and_the_message_stays_readable() -> None:
    found = problems({"name": "x", "nodes": [FINE | {"id": f"n{i}", "handler": "x"} for i in range(10_000)]})
    assert len({each.path for each in found}) == len(found) == 10_000
    wrong = problems({"name": "x", "nodes": [FINE | {"id": f"n{i}", "timeout": 0} for i in range(2_000)]})
    assert len(wrong) == 2_000
    with pytest.raises(DocumentError, match="and 1,900 more") as told:
        Document({"name": "x", "nodes": [FINE | {"id": f"n{i}", "timeout": 0} for i in range(2_000)]}, HANDLERS)
    assert len(str(told.value)) < 20_000
