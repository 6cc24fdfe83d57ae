"""What is wrong with a document is told all at once: where, what was found, what was expected, what may have been meant."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepwell import Document, Graph, InputError
from stepwell.base.forms import problems as collecting
from stepwell.core.graph.check import GraphProblem
from stepwell.define.document import checking, document
from stepwell.define.document.checking import with_templates_read
from stepwell.define.document.forms import MAX_TAG, MAX_TAGS, MEANS, DocumentForm, NodeForm
from stepwell.define.document.problems import problem_place
from stepwell.define.document.schema import document_schema
from stepwell.errors import DocumentError, GraphError
from stepwell.handlers import Handlers

HANDLERS = Handlers()
TOP_FIELDS, NODE_FIELDS = list(DocumentForm.model_fields), list(NodeForm.model_fields)
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
    (FINE | {"handler": 7}, "$.nodes[0].handler", "expected some text, got 7"),
    (FINE | {"handler": "tranform"}, "$.nodes[0].handler", "did you mean 'transform'?"),
    (FINE | {"config": []}, "$.nodes[0].config", "expected an object"),
    (FINE | {"config": {"template": 1, "tempalte": 2}}, "$.nodes[0].config.tempalte", "did you mean 'template'?"),
    (FINE | {"dependencies": "a"}, "$.nodes[0].dependencies", "write ['a']"),
    (FINE | {"dependencies": {"b": 1}}, "$.nodes[0].dependencies", "expected a list of ids"),
    (FINE | {"dependencies": 7}, "$.nodes[0].dependencies", "expected a list of ids, got 7"),
    (FINE | {"dependencies": [7]}, "$.nodes[0].dependencies[0]", "expected the id of a node, got 7"),
    (FINE | {"dependencies": ["b"]}, "$.nodes[0].dependencies", "'b' is no node"),
    (FINE | {"timeout_seconds": -1}, "$.nodes[0].timeout_seconds", "positive number"),
    (FINE | {"timeout_seconds": "30"}, "$.nodes[0].timeout_seconds", "positive number"),
    (FINE | {"timeout_seconds": None}, "$.nodes[0].timeout_seconds", "got null"),
    (FINE | {"timeout": True}, "$.nodes[0].timeout", "got true"),
    (FINE | {"retry": 0}, "$.nodes[0].retry", "whole number of attempts"),
    (FINE | {"retry": {"max_attempts": 2, "delay": 1}}, "$.nodes[0].retry.delay", "retry has no field"),
    (FINE | {"retry": {}}, "$.nodes[0].retry", "retry needs its max_attempts"),
    (FINE | {"retry": {"max_attempts": 0}}, "$.nodes[0].retry.max_attempts", "at least 1"),
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
    ({"nodes": [FINE]}, "$", "a document needs its name"),
    ({}, "$", "a document needs its"),
    ({"name": "x"}, "$", "a document needs its nodes"),
    (
        {"name": "x", "nodes": []},
        "$.nodes",
        "expected a list of one or more nodes, each an object with its id, got an empty list",
    ),
    ({"name": "x", "nodes": {}}, "$.nodes", "each an object with its id, got an empty object"),
    ({"name": "x", "nodes": [7]}, "$.nodes[0]", "expected an object, got 7"),
    ([], "$", "expected an object with name and nodes"),
    ("null", "$", "expected an object with name and nodes"),
    ({"name": "a@1", "nodes": [FINE]}, "$.name", "without @"),
    ({"name": "a\x1b[2J", "nodes": [FINE]}, "$.name", "printable"),
    ({"name": "x", "nodes": [FINE], "on_failure": "stop"}, "$.on_failure", "one of fail_fast, finish, pause"),
    ({"name": "x", "nodes": [FINE], "deadline": 0}, "$.deadline", "positive number"),
    ({"name": "x", "nodes": [FINE], "tags": ["a", 7]}, "$.tags", "a list of texts"),
    ({"name": "x", "nodes": [FINE], "mode": "flow"}, "$.mode", "one of workflow, pipeline"),
    (
        {"name": "x", "nodes": [FINE], "input": {"type": "array"}},
        "$.input.type",
        "expected object, which the input of a run is, got 'array'",
    ),
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


@pytest.mark.parametrize("template", ["{{ a.output }}", "{{ a.result }}"])
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
    assert Document(MappingProxyType(document.canonical), HANDLERS) == document
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


def test_the_templates_of_a_document_have_a_limit_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "MAX_PARSED", 20_000)
    for many in (["x{{ 1" + "~1" * 2_000 + " }}"] * 10, ["x" * 9_000 + "{{ run.id }}" * 300] * 50):
        document = {"name": "x", "nodes": [{"id": "a", "handler": "transform", "config": {"template": many}}]}
        with pytest.raises(DocumentError, match="the templates before it are too much already"):
            Document(document)
        document["nodes"] = [{"id": "a", "handler": "transform", "config": {"template": many[:2]}}]
        Document(document)


NODE_FORMS: dict[str, tuple[list[Any], list[Any]]] = {
    "id": (["a", "_x1", "A" * 100], ["1a", "a-b", "", "A" * 101, 7, None]),
    "handler": (["transform", "shop.jobs:load"], [7, "", "tranform", None]),
    "config": ([{"template": 1}, {"template": "{{ input.x }}"}], [[], 7, {"template": 1, "x": 2}, None]),
    "dependencies": ([[]], ["a", [7], {}, 7, None]),
    "timeout_seconds": ([0.5, 30], [0, -1, "30", True, None]),
    "name": (["x", "a b"], ["", 7, None]),
    "description": (["", "x"], [7, None]),
    "when": (["{{ input.x }}", "{{ 1 < 2 }}"], ["", "input.x", "{{ x", 7, True, None]),
    "join": (["any", "all"], ["one", "", 7, None]),
    "retry": (
        [1, 3, {"max_attempts": 1}, {"max_attempts": 2, "base_delay": 0.5, "max_delay": 0.5, "retry_on": ["a.B"]}],
        [
            *(0, 1.5, True, "3", [], None, {}, {"max_attempts": 0}, {"max_attempts": "2"}),
            *({"max_attempts": 2, **more} for more in ({"base_delay": 0}, {"base_delay": "1"}, {"max_delay": -1})),
            *({"max_attempts": 2, **more} for more in ({"delay": 1}, {"retry_on": []}, {"retry_on": [7]})),
            *({"max_attempts": 2, **more} for more in ({"retry_on": "a.B"}, {"max_delay": None})),
        ],
    ),
    "on_lost": (["rerun", "interrupt"], ["retry", "", 7, None]),
    "queue": (["gpu"], ["", 7, None]),
    "side_effects": (["pure", "recordable", "opaque"], ["none", 7, None]),
    "job": (["transform"], [7]),
    "args": ([{"template": 1}], [[]]),
    "depends_on": ([[]], ["a"]),
    "timeout": ([5], [0]),
    "colour": ([], ["red"]),
}
FORMS: dict[str, tuple[list[Any], list[Any]]] = {
    "name": (["x", "a b"], ["", "a@1", 7, None]),
    "description": (["x"], [7, None]),
    "mode": (["workflow"], ["flow", 7, None]),
    "input": ([{}, {"type": "object"}, {"properties": {"a": {}}}], [[], {"type": "array"}, {"propertys": {}}, None]),
    "on_failure": (["fail_fast", "finish", "pause"], ["stop", 7, None]),
    "deadline": ([0.5, 30], [0, -1, "30", True, None]),
    "tags": ([[], ["a"], {"a": "b"}], [7, "a", ["a", 7], {"a": 7}, None]),
    "triggers": ([[], [{"every": "1h"}]], [7, {}, [7], [{"evry": "1h"}]]),
    "nodes": ([[FINE]], [[], {}, 7, [7], None]),
    "colour": ([], ["red"]),
}
WRITTEN = [
    *(
        (False, field, value, good)
        for field, both in FORMS.items()
        for good in (True, False)
        for value in both[not good]
    ),
    *(
        (True, field, value, good)
        for field, both in NODE_FORMS.items()
        for good in (True, False)
        for value in both[not good]
    ),
]


def test_editors_are_told_the_same_as_the_check_says() -> None:
    """Every field with what it may be and what not: the schema of documents and the check agree."""
    judge = jsonschema.Draft202012Validator(document_schema(HANDLERS))
    assert {*NODE_FIELDS, *MEANS} | {"colour"} == set(NODE_FORMS)
    assert {*TOP_FIELDS, "colour"} == set(FORMS)
    disagree = []
    for in_node, field, value, is_good in WRITTEN:
        node = {key: each for key, each in FINE.items() if MEANS.get(field) != key}
        if in_node and field in ("handler", "job") and value == "shop.jobs:load":
            node["config"] = {}
        data = (
            {"name": "x", "nodes": [node | {field: value}]} if in_node else {"name": "x", "nodes": [FINE], field: value}
        )
        if judge.is_valid(data) is not is_good:
            disagree.append((field, value))
        if is_good:
            made = Document(data, HANDLERS)
            assert Document.parse(made.content, HANDLERS).canonical == made.canonical
        else:
            with pytest.raises(DocumentError) as told:
                Document(data, HANDLERS)
            assert all(field in str(each) or each.path in ("$.nodes", "$") for each in told.value.problems), (
                field,
                value,
            )
    assert disagree == []


CANONICAL: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"retry": 3}, {"retry": 3}),
    ({"retry": {"max_attempts": 3}}, {"retry": 3}),
    ({"retry": {"max_attempts": 3, "base_delay": 1, "max_delay": 60.0}}, {"retry": 3}),
    ({"retry": {"max_attempts": 3, "base_delay": 2.0}}, {"retry": {"max_attempts": 3, "base_delay": 2}}),
    ({"retry": {"max_attempts": 3, "max_delay": 7.5}}, {"retry": {"max_attempts": 3, "max_delay": 7.5}}),
    (
        {"retry": {"max_attempts": 1, "retry_on": ["b.C", "a.B"]}},
        {"retry": {"max_attempts": 1, "retry_on": ["a.B", "b.C"]}},
    ),
    ({"timeout": 5.0}, {"timeout_seconds": 5}),
    ({"timeout_seconds": 0.5}, {"timeout_seconds": 0.5}),
    ({"name": "a", "on_lost": "rerun", "queue": "default", "dependencies": []}, {}),
    ({"name": "b", "on_lost": "interrupt"}, {"name": "b", "on_lost": "interrupt"}),
    ({"queue": "gpu", "side_effects": "pure"}, {"queue": "gpu", "side_effects": "pure"}),
    ({"description": "x"}, {"description": "x"}),
]


@pytest.mark.parametrize(("written", "kept"), CANONICAL, ids=[str(each[0]) for each in CANONICAL])
def test_what_is_kept_of_a_node_is_written_in_one_way_and_is_in_its_graph(
    written: dict[str, Any], kept: dict[str, Any]
) -> None:
    made = Document({"name": "x", "nodes": [FINE | written]}, HANDLERS)
    assert made.canonical["nodes"] == [FINE | kept]
    (spec,) = made.graph
    handler = HANDLERS["transform"]
    retry = kept.get("retry")
    attempts = retry.get("max_attempts") if isinstance(retry, dict) else retry
    assert (spec.name, spec.queue, spec.on_lost) == (
        kept.get("name", "a"),
        kept.get("queue", "default"),
        kept.get("on_lost", "rerun"),
    )
    assert spec.timeout == kept.get("timeout_seconds", handler.timeout)
    assert spec.side_effects == kept.get("side_effects", handler.side_effects)
    if attempts is not None:
        assert spec.retry is not None
        assert spec.retry.max_attempts == attempts
        assert spec.retry.delays() == (
            (retry.get("base_delay", 1.0), retry.get("max_delay", 60.0)) if isinstance(retry, dict) else (1.0, 60.0)
        )
    else:
        assert spec.retry == (None if kept.get("on_lost") == "interrupt" else handler.retry)


TOP_KEPT: dict[str, tuple[Any, Any]] = {
    "on_failure": ("pause", "pause"),
    "deadline": (30.0, 30),
    "tags": (["b", "a", "b"], ["b", "a"]),
    "input": ({"properties": {"a": {"type": "integer"}}}, {"properties": {"a": {"type": "integer"}}}),
    "description": ("what for", "what for"),
}


def test_what_is_kept_of_a_document_is_written_in_one_way() -> None:
    plain = Document({"name": "x", "nodes": [FINE]}, HANDLERS)
    assert plain.canonical == {"name": "x", "nodes": [FINE]}
    for field, (written, kept) in TOP_KEPT.items():
        made = Document({"name": "x", "nodes": [FINE], field: written}, HANDLERS)
        assert made.canonical == {**plain.canonical, field: kept}
        assert made != plain
        assert made.digest != plain.digest
    assert Document({"name": "x", "nodes": [FINE], "tags": {"a": "b"}}, HANDLERS).run_tags == {"a": "b"}
    assert plain.run_tags == {}
    assert plain.node("a") is plain.nodes[0]
    assert plain.node("b") is None
    assert plain != 7


INPUTS: list[tuple[Any, dict[str, Any], Any]] = [
    (None, {"anything": [1]}, {"anything": [1]}),
    ({"properties": {"n": {"type": "integer", "default": 3}}}, {}, {"n": 3}),
    ({"properties": {"n": {"type": "integer", "default": 3}}}, {"n": 4}, {"n": 4}),
    ({"properties": {"n": {}}}, {"m": 1}, "input.m: unknown field"),
    ({"properties": {"n": {}}, "additionalProperties": True}, {"m": 1}, {"m": 1}),
    ({"properties": {"n": {}}, "anyOf": [{"required": ["m"]}]}, {"m": 1}, {"m": 1}),
    ({"properties": {"n": {}}, "$ref": "#/$defs/m", "$defs": {"m": {}}}, {"m": 1}, {"m": 1}),
    ({"required": ["m"]}, {"n": 1}, "input.m: this field is missing"),
    ({"properties": {"n": {"type": "integer"}, "m": {"minimum": 2}}}, {"n": "x", "m": 1}, "input.m.*\n.*input.n"),
]


@pytest.mark.parametrize(("schema", "given", "expected"), INPUTS, ids=[str(each[:2]) for each in INPUTS])
def test_an_input_is_checked_and_gets_its_defaults(schema: Any, given: dict[str, Any], expected: Any) -> None:
    document = Document({"name": "x", "nodes": [FINE]} | ({} if schema is None else {"input": schema}), HANDLERS)
    if isinstance(expected, dict):
        assert document.checked_input(given) == expected
    else:
        with pytest.raises(InputError, match=expected):
            document.checked_input(given)
    with pytest.raises(InputError, match="expected an object"):
        document.checked_input([1])  # type: ignore[arg-type]


EDITED: list[tuple[dict[str, Any], tuple[str, ...] | str]] = [
    ({"template": "{{ a.result }} {{ input.x }} {{ run.id }} {{ a.output }}"}, ("a",)),
    ({"template": "no template"}, ()),
    ({"template": "{{ nobody.result }}"}, "names 'nobody', which is no node"),
    ({"template": "{{ a.result"}, "the template is wrong"),
    ({"tempalte": 1}, "did you mean 'template'?"),
]


@pytest.mark.parametrize(("config", "expected"), EDITED, ids=[str(each[0]) for each in EDITED])
def test_the_templates_of_an_edited_graph_are_checked(config: dict[str, Any], expected: Any) -> None:
    below = FINE | {"id": "b", "dependencies": ["a"], "config": {"template": "{{ a.result }}"}}
    graph = Document({"name": "x", "nodes": [FINE, below]}, HANDLERS).graph

    def edited(**more: Any) -> Graph:
        return Graph([graph.nodes["a"], graph.nodes["b"]._replace(**more)], source=graph.source)  # type: ignore[index]

    if isinstance(expected, tuple):
        read = with_templates_read(edited(args=config, needs=()), HANDLERS)
        assert (read.nodes["b"].needs, read.source) == (expected, graph.source)  # type: ignore[index]
    else:
        with pytest.raises(GraphError, match=expected):
            with_templates_read(edited(args=config), HANDLERS)
    with pytest.raises(GraphError, match="tranform"):
        with_templates_read(edited(job="tranform"), HANDLERS)
    function = edited(job="shop.jobs:load", args={"x": "{{ a.result }}"}, needs=())
    assert with_templates_read(function, HANDLERS).nodes["b"].needs == ("a",)  # type: ignore[index]
    plain = Graph([spec._replace(templated=False) for spec in edited()])
    assert with_templates_read(plain, HANDLERS) is plain


NODES = [FINE | {"id": each, "dependencies": sorted("abc"[:place])} for place, each in enumerate("abc")]
LIMITS: list[tuple[Any, str, int, Any, Any, str]] = [
    (document, "MAX_NODES", 3, {"nodes": NODES}, {"nodes": [*NODES, FINE | {"id": "d"}]}, "it has 4 nodes; at most 3"),
    (
        *(document, "MAX_EDGES", 3, {"nodes": NODES}),
        *({"nodes": [*NODES, FINE | {"id": "d", "dependencies": ["a"]}]}, "it has 4 dependencies; at most 3"),
    ),
    (
        *(checking, "MAX_CONFIG", 4, {"nodes": [FINE | {"config": {"template": [1, {"a": 2}]}}]}),
        *({"nodes": [FINE | {"config": {"template": [1, {"a": 2}, 3]}}]}, "it holds more than 4 values"),
    ),
]


TAGS: list[tuple[Any, Any]] = [
    (["x" * MAX_TAG], ["x" * (MAX_TAG + 1)]),
    ({"x": "y" * MAX_TAG}, {"x": "y" * (MAX_TAG + 1)}),
    ({"x" * MAX_TAG: "y"}, {"x" * (MAX_TAG + 1): "y"}),
    *(({str(n): "x" for n in range(MAX_TAGS)}, {str(n): "x" for n in range(MAX_TAGS + 1)}),),
]


def test_tags_have_limits() -> None:
    for fits, too_much in TAGS:
        Document({"name": "x", "nodes": [FINE], "tags": fits}, HANDLERS)
        message = "an object of at most 20 texts, each of at most 100 characters, got "
        assert message in problems({"name": "x", "nodes": [FINE], "tags": too_much})[0].message


@pytest.mark.parametrize(
    ("module", "name", "most", "fits", "too_much", "message"), LIMITS, ids=[each[1] for each in LIMITS]
)
def test_a_document_may_have_as_much_as_is_allowed_and_no_more(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, most: int, fits: Any, too_much: Any, message: str
) -> None:
    monkeypatch.setattr(module, name, most)
    Document({"name": "x", "nodes": [FINE], **fits}, HANDLERS)
    assert message in str(problems({"name": "x", "nodes": [FINE], **too_much})[0])


def test_the_search_for_problems_ends_and_names_are_compared_for_the_first_few(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [FINE | {"id": f"n{number}", "handler": f"transfor{number}"} for number in range(30)]
    told = problems({"name": "x", "nodes": nodes})
    assert [each.nearest for each in told] == ["transform"] * 20 + [None] * 10
    monkeypatch.setattr(collecting, "MAX_PROBLEMS", 5)
    assert len(problems({"name": "x", "nodes": nodes[:5]})) == len(problems({"name": "x", "nodes": nodes})) == 5
    repeated = ",".join(f'"x{number // 2}": 1' for number in range(20))
    assert len(problems(f'{{"name": "x", {repeated}, "nodes": []}}')) == 5


def test_every_problem_of_a_graph_has_a_place_in_json() -> None:
    """The whole, if it is not known where in the text the node was written."""
    written = GraphProblem("n7", "it depends on itself", path="$.nodes[0].depends_on[1]")
    assert problem_place(written) == {"path": "$.nodes[0].depends_on[1]", "message": "it depends on itself"}
    assert problem_place(written._replace(path=None)) == {"path": "$", "message": "n7: it depends on itself"}
    assert problem_place("anything") == {"path": "$", "message": "anything"}
