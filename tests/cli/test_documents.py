"""The commands for documents: check, schema, render, try, save, activate, workflows, workflow; run, graph and show of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stepwell.base.schemas import KEYWORDS
from stepwell.cli.exits import ExitCode
from stepwell.handlers import Handlers
from stepwell.pipeline.states.database import is_created, open_database_states
from stepwell.pipeline.states.notes import note_types
from tests.cli.conftest import Shop

GREET = """
name: greet
description: Say hello.
input:
  properties:
    name: {type: string}
    times: {type: integer, default: 2}
  required: [name]
nodes:
  - id: hello
    handler: transform
    config: {template: "Hello {{ input.name }}"}
  - id: all
    handler: transform
    config: {template: {text: "{{ hello.result }}!", n: "{{ input.times }}", key: no}}
    dependencies: [hello]
"""


@pytest.fixture
def greet(shop: Shop) -> Shop:
    shop.write("greet.yaml", GREET)
    return shop


def test_check_tells_what_waits_for_states_that_nothing_makes(shop: Shop) -> None:
    shop.write(
        "late.yaml",
        """
mode: pipeline
nodes:
  - {id: page, typeId: state_write, data: {path: "out/{x}", input: "in/{x}"}}
  - {id: mine, typeId: state_trigger, data: {stateType: page, workflow: greet}}
  - {id: other, typeId: state_trigger, data: {stateType: pagge, workflow: greet}}
""",
    )
    assert shop("check", "late.yaml").out.splitlines() == [
        "late.yaml: late, 1 stage, but it waits for states that nothing makes",
        "  other: no stage here makes 'pagge', nor one of a pipeline that is checked with it or was built in this root",
    ]


FIRST = """
mode: pipeline
nodes:
  - {id: notes, typeId: state_scan, data: {pattern: "notes/{day}.txt"}}
  - {id: article, typeId: state_write, data: {path: "articles/{{$.notes.day}}.md"}}
connections: [{sourceNodeId: notes, targetNodeId: article}]
"""
SECOND = """
mode: pipeline
nodes:
  - {id: on, typeId: KIND, data: {stateType: article}}
  - {id: copy, typeId: state_write, data: {path: "copies/{{$.on.VARIABLE}}", input: "{{$.on.path}}"}}
connections: [{sourceNodeId: on, targetNodeId: copy}]
"""


@pytest.mark.parametrize("kind", ["state_trigger", "state_read", "state_gate"])
def test_check_looks_for_types_of_states_in_the_files_that_are_checked_together(shop: Shop, kind: str) -> None:
    second = SECOND.replace("KIND", kind)
    shop.write("first.yaml", FIRST)
    shop.write("second.yaml", second.replace("VARIABLE", "id"))
    shop.write("typo.yaml", second.replace("VARIABLE", "id").replace("article", "artcle"))
    shop.write("by_day.yaml", second.replace("VARIABLE", "day"))

    def awaited(*files: str) -> list[dict[str, str]]:
        return [record["awaited"] for record in shop("check", *files, "--json").json]

    assert awaited("second.yaml") == [{"on": "article"}]
    assert awaited("typo.yaml", "second.yaml", "by_day.yaml", "first.yaml") == [{"on": "artcle"}, {}, {}, {}]
    alone = shop("check", "by_day.yaml", code=ExitCode.USAGE)
    assert "there is no field 'day'" in alone.out
    assert "no pipeline in this root is known to make 'article' (on)" in alone.out
    assert "by_day@1  saved" in shop("save", "by_day.yaml", "first.yaml").out


WAITS_IN_DATABASE = """
name: waits
mode: pipeline
stateRoot: {root}
nodes:
  - {{id: page, typeId: state_write, data: {{path: "out/{{x}}", input: "in/{{x}}"}}}}
  - {{id: mine, typeId: state_trigger, data: {{stateType: page, workflow: greet}}}}
  - {{id: theirs, typeId: state_trigger, data: {{stateType: made, workflow: greet}}}}
  - {{id: other, typeId: state_trigger, data: {{stateType: pagge, workflow: greet}}}}
  - {{id: read, typeId: state_read, data: {{stateType: made}}}}
  - {{id: connected, typeId: state_trigger, data: {{stateType: pagge}}}}
  - {{id: copy, typeId: state_write, data: {{path: "copy/{{{{$.read.id}}}}"}}}}
connections: [{{sourceNodeId: read, targetNodeId: copy}}, {{sourceNodeId: connected, targetNodeId: copy}}]
"""


@pytest.fixture(params=["sqlite", "postgres"])
def state_url(request: pytest.FixtureRequest, shop: Shop) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{shop.folder}/states.db"
    url: str = request.getfixturevalue("postgres").new_url()
    return url


def test_check_tells_it_of_states_in_a_database_too_and_creates_none(shop: Shop, state_url: str) -> None:
    shop.write("waits.yaml", WAITS_IN_DATABASE.format(root=state_url))
    awaited = {"theirs": "made", "other": "pagge", "read": "made", "connected": "pagge"}
    assert shop("check", "waits.yaml", "--json").json[0]["awaited"] == awaited
    assert not (shop.folder / "states.db").exists()
    assert not is_created(state_url)
    note_types(open_database_states(state_url, "others").notes, "others", {"made": "made/{x}"})
    assert shop("check", "waits.yaml", "--json").json[0]["awaited"] == {"other": "pagge", "connected": "pagge"}


def test_check_works_where_the_database_of_states_is_away(shop: Shop) -> None:
    shop.write("waits.yaml", WAITS_IN_DATABASE.format(root="postgresql://nobody@127.0.0.1:1/none"))
    ended = shop("check", "waits.yaml")
    assert ended.out == "waits.yaml: waits, 2 stages, nothing is wrong\n"
    assert "waits.yaml: whether every state that it waits for is made is not known: " in ended.err


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (GREET.replace("{type: string}", "{type: string, pattern: '[z-a]'}"), "$.input.properties.name.pattern: "),
        (WAITS_IN_DATABASE.format(root="states").replace("out/{x}", "out/[z-a]{x}"), "$.nodes[0].data.path: "),
    ],
    ids=["schema", "path"],
)
def test_check_refuses_a_pattern_that_is_none(shop: Shop, text: str, place: str) -> None:
    shop.write("bad.yaml", text)
    ended = shop("check", "bad.yaml", code=ExitCode.USAGE)
    assert place in ended.out
    assert "z-a" in ended.out


def test_check_tells_every_problem_with_its_line_and_has_an_exit_code(greet: Shop) -> None:
    assert greet("check", "greet.yaml").out == "greet.yaml: greet, 2 nodes, nothing is wrong\n"
    greet.write(
        "bad.yaml", GREET.replace("hello.result", "helo.result").replace("handler: transform", "handler: tranform", 1)
    )
    ended = greet("check", "greet.yaml", "bad.yaml", code=2)
    assert ended.out.splitlines() == [
        "greet.yaml: greet, 2 nodes, nothing is wrong",
        "bad.yaml:11:14: $.nodes[0].handler: there is no handler 'tranform'; did you mean 'transform'?",
        "bad.yaml:15:31: $.nodes[1].config.template.text: the template names 'helo', which is no node; did you mean 'hello'?",
    ]
    assert ended.err == "2 problems in 2 files\n"
    first, second = greet("check", "greet.yaml", "bad.yaml", "--json", code=2).json
    assert (first["valid"], first["file"], first["name"], first["nodes"]) == (True, "greet.yaml", "greet", 2)
    assert (first["problems"], first["stages"], first["not_followed"]) == ([], None, {})
    assert second["valid"] is False
    assert second["problems"][0] == {
        "path": "$.nodes[0].handler",
        "message": "there is no handler 'tranform'; did you mean 'transform'?",
        "line": 11,
        "column": 14,
        "found": "'tranform'",
        "nearest": "transform",
    }
    assert "it cannot be read" in greet("check", "nothing.yaml", code=2).out


def test_schema_is_a_schema_that_knows_every_handler(greet: Shop) -> None:
    schema = greet("schema").json
    node = schema["$defs"]["node"]
    assert set(Handlers()) <= set(node["properties"]["handler"]["anyOf"][0]["enum"])
    assert {each["if"]["properties"]["handler"]["const"] for each in node["allOf"]} >= set(Handlers())
    assert schema["else"]["properties"]["input"]["propertyNames"]["enum"] == sorted(KEYWORDS)
    assert set(schema["else"]["properties"]) == {
        *("mode", "name", "description", "input", "on_failure", "deadline", "tags", "triggers", "nodes")
    }


def test_render_shows_what_a_node_would_get(greet: Shop) -> None:
    greet.write("outputs.json", '{"hello": {"result": "Hi"}}')
    words = ("render", "greet.yaml", "all", "--outputs", "outputs.json", "-i", "name=x", "-i", "times=7")
    assert greet(*words).json == {"template": {"text": "Hi!", "n": 7, "key": "no"}}
    told = greet("render", "greet.yaml", "all", "-i", "name=x", code=2).err
    assert 'expected what hello returned: --outputs FILE, a JSON object as {"hello": {"result": ...}}' in told
    assert "did you mean 'all'?" in greet("render", "greet.yaml", "al", code=2).err
    assert "expected an integer" in greet(*words[:-1], "times=many", code=2).err
    secret = GREET.replace('"Hello {{ input.name }}"', "secret:DB")
    greet.write(
        "secret.yaml", secret.replace("handler: transform", "handler: shop:nothing", 1).replace("template: s", "x: s")
    )
    assert greet("render", "secret.yaml", "hello", "-i", "name=x").json == {"x": "secret:DB"}


def test_try_runs_one_node_alone(greet: Shop) -> None:
    ended = greet("try", "greet.yaml", "all", "--outputs", "-", "-i", "name=x", stdin='{"hello": {"result": "Hi"}}')
    assert ended.json == {"result": {"text": "Hi!", "n": 2, "key": "no"}}
    assert not (greet.folder / ".stepwell").exists()
    failed = greet(
        "try", "greet.yaml", "all", "--outputs", "-", "-i", "name=x", stdin='{"hello": {"other": null}}', code=0
    )
    assert failed.json["result"]["text"] == '{"other":null}!', "the main field of an output without one is all of it"
    told = greet("try", "greet.yaml", "all", "--outputs", "-", "-i", "name=x", stdin='{"hello": null}', code=1).err
    assert "is null" in told


PIPELINE = {
    "name": "texts",
    "mode": "pipeline",
    "stateRoot": "texts",
    "nodes": [
        {
            "id": "n",
            "typeId": "state_transform",
            "data": {"input": "in/{x}", "output": "out/{x}", "transform": "no_such"},
        }
    ],
}


def test_nothing_is_saved_if_one_file_is_wrong(greet: Shop) -> None:
    for name, text in {
        "pipeline.json": json.dumps(PIPELINE),
        "document.json": '{"name": "d", "nodes": [{"id": "a"}]}',
    }.items():
        greet.write(name, text)
        assert name in greet("save", "greet.yaml", name, code=2).err
        assert greet("workflows", "--json").json == []


def test_versions_are_saved_chosen_compared_and_run(greet: Shop) -> None:
    assert greet("workflows").err.startswith("no documents in")
    assert greet("save", "greet.yaml").out == "greet@1  saved\n"
    assert greet("save", "greet.yaml").out == "greet@1  was stored before\n"
    greet.write("greet.yaml", GREET.replace("Hello", "Hi"))
    assert greet("save", "greet.yaml", "--json").json[0]["version"] == 2
    assert greet("run", "greet", "-i", "name=Ann").json["result"]["text"] == "Hi Ann!"
    assert greet("run", "greet@1", "-i", "name=Ann").json["result"]["text"] == "Hello Ann!"
    newest = greet("ls", "--json").json[0]["id"]
    assert greet("show", newest).out.startswith("greet@1  ")
    assert greet("show", newest, "--json").json["document"]["version"] == 1
    greet("activate", "greet@1")
    assert greet("run", "greet", "-i", "name=Ann").json["result"]["text"] == "Hello Ann!"
    greet.write("greet.yaml", GREET.replace("Hello", "Hey"))
    assert greet("save", "greet.yaml").out == "greet@3  saved; greet@1 stays active\n"
    (row,) = greet("workflows", "--json").json
    assert (row["name"], row["version"], row["versions"]) == ("greet", 1, 3)
    assert "@1" in greet("workflows").out
    difference = greet("workflow", "greet", "--diff", "1", "3").out
    assert '-        "template": "Hello {{ input.name }}"' in difference
    assert '+        "template": "Hey {{ input.name }}"' in difference
    assert greet("workflow", "greet", "--version", "2", "--json").json["document"]["nodes"][0]["config"] == {
        "template": "Hi {{ input.name }}"
    }
    assert greet("workflow", "greet").out.count("greet@") == 3
    assert "greet@1 is active" not in greet("activate", "greet").out
    assert "did you mean 'greet'?" in greet("run", "gret", code=2).err
    assert "there is no version 9" in greet("activate", "greet@9", code=2).err


def test_a_bad_document_stores_nothing(greet: Shop) -> None:
    greet.write("bad.yaml", "name: bad\nnodes: []")
    assert "expected a list of one or more nodes" in greet("save", "greet.yaml", "bad.yaml", code=2).err
    assert greet("workflows", "--json").json == []
    assert "expected a list of one or more nodes" in greet("run", "bad.yaml", code=2).err
    assert greet("ls", "--json").json == []


def test_run_graph_show_and_fork_take_documents(greet: Shop) -> None:
    assert greet("run", "greet.yaml", "-i", "name=Ann", "--run-id", "r-1").json["result"]["text"] == "Hello Ann!"
    assert (
        greet("run", "greet.yaml", "--input-file", "-", stdin='{"name": "Bob"}').json["result"]["text"] == "Hello Bob!"
    )
    assert "$.input.name: this field is missing" in greet("run", "greet.yaml", code=2).err
    greet("save", "greet.yaml")
    for what in ("greet.yaml", "greet", "r-1"):
        assert "hello" in greet("graph", what).out
    assert greet("show", "greet").out.startswith("greet@1  2 nodes")
    assert "input.times: integer = 2" in greet("show", "greet.yaml").out
    assert greet("show", "greet@1", "--json").json["document"]["name"] == "greet"
    fork = greet("fork", "r-1", "--at", "all", "-i", "times=9", "--run-id", "f-1")
    assert fork.json["result"] == {"text": "Hello Ann!", "n": 9, "key": "no"}
    assert "expected an integer" in greet("fork", "r-1", "-i", "times=x", code=2).err


def test_show_and_why_of_a_node_have_its_config_before_and_after(greet: Shop) -> None:
    greet("run", "greet.yaml", "-i", "name=Ann", "--run-id", "r-1")
    for shown in (greet("show", "r-1", "all").out, greet("why", "r-1", "all").out):
        assert 'config  {"template"' in shown.replace("config {", "config  {")
        assert "{{ hello.result }}!" in shown
        assert '"text":"Hello Ann!"' in shown
    data = greet("show", "r-1", "all", "--json").json
    assert data["attempt_list"][0]["config"] == {"template": {"text": "Hello Ann!", "n": 2, "key": "no"}}
    assert greet("why", "r-1", "all", "--json").json["config"]["written"]["template"]["key"] == "no"


def test_a_graph_of_a_document_is_repaired_from_the_command_line(greet: Shop, tmp_path: Path) -> None:
    greet.write("broken.yaml", GREET.replace("{{ input.times }}", "{{ hello.result.count }}"))
    greet("run", "broken.yaml", "-i", "name=Ann", "--run-id", "r-1", code=1)
    form = greet("graph", "r-1", "--frozen").json
    form["nodes"]["all"]["args"]["template"]["n"] = 1
    greet.write("mended.json", json.dumps(form))
    greet("import", "r-1", "mended.json")
    assert greet("retry", "r-1").json["result"] == {"text": "Hello Ann!", "n": 1, "key": "no"}
