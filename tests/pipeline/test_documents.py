"""Pipelines as JSON and YAML: the same model, all problems at once, the JSON of the first design as it stands."""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell import Engine, Entity, Handlers
from stepwell.define.document.problems import Unreadable
from stepwell.define.document.text import read_text
from stepwell.engine.documents import Documents, SavedDocument
from stepwell.errors import DocumentError, InputError
from stepwell.pipeline import definition
from stepwell.pipeline.building.found import GivenPipelines
from stepwell.pipeline.building.watch import Watcher
from stepwell.pipeline.document.forms import DATA, PipelineForm
from stepwell.pipeline.document.load import is_pipeline
from stepwell.pipeline.document.schema import any_schema
from stepwell.pipeline.document.stored import save_pipeline
from stepwell.pipeline.finding import load_pipeline, stored_pipeline
from stepwell.pipeline.staleness.connections import connect
from tests.pipeline.blog import statuses, write

EXAMPLES = Path(__file__).parents[2] / "examples/pipelines"
HANDLERS = Handlers(["examples.pipelines.stand_in"])
SOURCE = """
{
  "mode": "pipeline",
  "stateRoot": "output/",
  "nodes": [
    {"id": "scan-logs", "typeId": "state_scan", "name": "dates", "data": {"pattern": "daily/{date}/", "filter": "hasFiles"}},
    {
      "id": "summarize", "typeId": "state_transform", "name": "summary",
      "data": {
        "input": "{{$.dates.path}}/*.txt", "output": "{{$.dates.path}}/summary.txt", "transform": "claude_summarize",
        "minSize": 500
      }
    },
    {
      "id": "blog", "typeId": "state_transform", "name": "blog",
      "data": {
        "input": "{{$.summary.path}}", "output": "final/{{$.dates.id}}-daily-digest.md", "transform": "claude_blog",
        "minSize": 500
      }
    },
    {"id": "on-summary-created", "typeId": "state_trigger",
     "data": {"stateType": "summary", "filter": "$.codeHash == currentCodeHash"}}
  ],
  "connections": [
    {"sourceNodeId": "scan-logs", "targetNodeId": "summarize"},
    {"sourceNodeId": "summarize", "targetNodeId": "blog"}
  ]
}
"""


def saved(folder: Path, text: str | dict[str, object], name: str = "auto-blog.json") -> Path:
    file = folder / name
    file.write_text(text if isinstance(text, str) else json.dumps(text))
    return file


def test_the_json_of_the_first_design_loads_as_it_stands(tmp_path: Path, root: Path) -> None:
    file = saved(tmp_path, SOURCE)
    assert is_pipeline(file)
    pipeline = load_pipeline(file, root=str(root))
    assert pipeline.name == "auto-blog"
    summary, blog = pipeline.stages.values()
    assert [pattern.text for pattern in summary.inputs.values()] == ["daily/{date}/*.txt"]
    assert next(iter(summary.outputs.values())).pattern.text == "daily/{date}/summary.txt"
    assert [pattern.text for pattern in blog.inputs.values()] == ["daily/{date}/summary.txt"]
    assert next(iter(blog.outputs.values())).pattern.text == "final/{date}-daily-digest.md"
    assert summary.min_size == 500
    assert pipeline.triggers == {}  # the one of the document is an input of the nodes below it


def test_comments_are_read_over_in_the_json_of_a_pipeline_and_nowhere_else(tmp_path: Path, root: Path) -> None:
    commented = SOURCE.replace('"nodes": [', '// or "database"\n  "nodes": [ /* all\n of them */', 1)
    commented = commented.replace('currentCodeHash"', 'currentCodeHash"  // only new/updated\n', 1)
    assert commented.count("//") == 2
    file = saved(tmp_path, commented)
    assert is_pipeline(file)
    plain, read = (load_pipeline(each, root=str(root)) for each in (saved(tmp_path, SOURCE, "plain.json"), file))
    assert [*read.stages] == [*plain.stages]
    assert {name: each._replace(function=None) for name, each in read.stages.items()} == {
        name: each._replace(function=None) for name, each in plain.stages.items()
    }
    text = '{"mode": "pipeline", "url": "http://a//b", // no /* string */\n "nodes": [7,]}'
    with pytest.raises(Unreadable, match="it is not JSON"):
        read_text(text)
    assert read_text(text.replace(",]", "]")).data["url"] == "http://a//b"
    with pytest.raises(Unreadable, match="it is not JSON"):
        read_text('{"name": "no pipeline", // here\n "nodes": []}')


_COMMENTS = st.one_of(
    st.text('*/ a"{}[],:\n', max_size=5).filter(lambda text: "*/" not in text).map(lambda text: f"/*{text}*/"),
    st.text('*/ a"{}[],:', max_size=5).map(lambda text: f"//{text}\n"),
)


@given(st.lists(_COMMENTS | st.just(" "), min_size=7, max_size=7))
def test_a_comment_is_read_over_wherever_a_blank_may_be(blanks: list[str]) -> None:
    a, b, c, d, e, f, g = blanks
    text = f'{a}{{{b}"mode": "pipeline"{c},{d}"nodes":{e}[{f}] }}{g}'
    assert read_text(text, "json").data == {"mode": "pipeline", "nodes": []}


def test_the_examples_give_the_same_in_both_forms(
    tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib

    from examples.pipelines import blog as written

    roots = tmp_path / "python", tmp_path / "data"
    for root in roots:
        for day in ("2026-01-15", "2026-01-16"):
            write(root, f"daily/{day}/notes.txt", f"Rain and wind on {day}, and more rain before the storm.")
    monkeypatch.setenv("BLOG_ROOT", str(roots[0]))
    importlib.reload(written)
    data = [
        load_pipeline(EXAMPLES / name, root=str(roots[1]), handlers=HANDLERS)
        for name in ("auto_blog.json", "daily_podcast.yaml")
    ]
    for pipeline in (written.auto_blog, written.daily_podcast, *data):
        report = pipeline.build(engine=engine)
        assert report.ok, report.failed
        assert set(statuses(pipeline).values()) == {"fresh"}
    for path in ("daily/2026-01-15/summary.txt", "blog/2026-01-15.md", "podcast/2026-01-16.txt"):
        assert (roots[0] / path).read_text() == (roots[1] / path).read_text()
    notes = (roots[1] / "notes/2026-01-15.md").read_text()
    assert notes.startswith("Notes for 2026-01-15, read from podcast/2026-01-15.txt\n\nHOST: Welcome")


def test_all_problems_are_told_at_once_with_their_places(tmp_path: Path) -> None:
    file = saved(
        tmp_path,
        """{
  "mode": "pipeline",
  "stateStor": "filesystem",
  "scanInterval": "often",
  "nodes": [
    {"id": "a", "typeId": "state_scan", "name": "dates", "data": {"pattern": "daily/{date", "filter": "hasFile"}},
    {"id": "b", "typeId": "state_transfrom", "data": {}},
    {"id": "c", "typeId": "state_transform", "name": "not-a-name", "data": {"output": "x", "transform": "t", "minsize": 1}},
    {"id": "d", "typeId": "state_transform", "name": "d", "data": {"input": "in/{{ nothing", "output": "y", "transform": "t"}}
  ],
  "connections": [{"sourceNodeId": "a", "targetNodeId": "z"}, {"sourceNodeId": ["a"], "targetNodeId": "a"}]
}""",
    )
    with pytest.raises(DocumentError) as raised:
        load_pipeline(file, root=str(tmp_path))
    told = {(each.path, each.line) for each in raised.value.problems}  # type: ignore[attr-defined]
    assert {
        ("$.stateStor", 3), ("$.scanInterval", 4), ("$.nodes[0].data.pattern", 6), ("$.nodes[0].data.filter", 6),
        ("$.nodes[1].typeId", 7), ("$.nodes[2].name", 8), ("$.nodes[2].data.minsize", 8), ("$.nodes[3].data.input", 9),
        ("$.connections[0].targetNodeId", 11), ("$.connections[1].sourceNodeId", 11),
    } <= told  # fmt: skip


def _document(*nodes: dict[str, object], connections: list[tuple[str, str]]) -> dict[str, object]:
    return {
        "mode": "pipeline",
        "nodes": list(nodes),
        "connections": [{"sourceNodeId": a, "targetNodeId": b} for a, b in connections],
    }


SCAN = {"id": "scan", "typeId": "state_scan", "name": "pages", "data": {"pattern": "in/{x}.txt"}}


def test_a_gate_waits_for_a_state_whatever_is_in_it(tmp_path: Path, root: Path, engine: Engine) -> None:
    file = saved(
        tmp_path,
        _document(
            SCAN,
            {"id": "approved", "typeId": "state_gate", "data": {"path": "approved/{{$.entity.id}}"}},
            {
                "id": "out",
                "typeId": "state_write",
                "data": {"path": "out/{{$.entity.id}}", "content": "{{$.pages.content}}!"},
            },
            connections=[("scan", "approved"), ("scan", "out"), ("approved", "out")],
        ),
    )
    pipeline = load_pipeline(file, root=str(root))
    write(root, "in/a.txt", "text")
    report = pipeline.build(engine=engine)
    assert (report.produced, report.left) == ((), {"out a": "blocked"})
    assert statuses(pipeline) == {"out a": "blocked"}
    assert pipeline.status().entities == 1
    (cause,) = pipeline.why("out/a").standing.causes
    assert (cause.code, cause.text) == ("input_missing", "approved/a is not there")
    write(root, "approved/a", "yes")
    assert pipeline.build(engine=engine).produced == ("out a",)
    assert (root / "out/a").read_text() == "text!"
    write(root, "approved/a", "still yes")
    assert pipeline.build(engine=engine).produced == ()
    (root / "approved/a").unlink()
    assert statuses(pipeline) == {"out a": "blocked"}  # and `clean` leaves it
    assert pipeline.clean(dry_run=True) == []
    with Watcher([pipeline], engine, interval=3_600) as watcher:
        watcher._scan_all()
        write(root, "in/b.txt", "text")
        watcher.changed([str(root.resolve() / "in/b.txt")])
        assert statuses(pipeline) == {"out a": "blocked", "out b": "blocked"}
        write(root, "approved/b", "yes")
        watcher.changed([str(root.resolve() / "approved/b")])
    assert (root / "out/b").exists()


def test_a_read_state_is_an_input_and_a_state_type_needs_no_path(tmp_path: Path, root: Path, engine: Engine) -> None:
    file = saved(
        tmp_path,
        _document(
            SCAN,
            {"id": "prompt", "typeId": "state_read", "name": "prompt", "data": {"path": "prompt.md"}},
            {
                "id": "article",
                "typeId": "state_write",
                "data": {"stateType": "article", "content": "{{$.prompt.content}} {{$.pages.content}}"},
            },
            {"id": "copy", "typeId": "state_write", "data": {"path": "copy/{{$.article.id}}"}},
            connections=[("scan", "article"), ("prompt", "article"), ("article", "copy")],
        ),
    )
    pipeline = load_pipeline(file, root=str(root))
    write(root, "in/a.txt", "text")
    write(root, "prompt.md", "Read:")
    assert set(pipeline.build(engine=engine).produced) == {"article a", "copy a"}
    assert (root / "article/a").read_text() == (root / "copy/a").read_text() == "Read: text"
    write(root, "prompt.md", "Look:")
    assert set(pipeline.build(engine=engine).produced) == {"article a", "copy a"}


def test_a_changed_config_is_config_changed(tmp_path: Path, root: Path, engine: Engine) -> None:
    def load(content: str) -> object:
        document = _document(
            SCAN,
            {"id": "out", "typeId": "state_write", "data": {"path": "out/{{$.entity.id}}", "content": content}},
            connections=[("scan", "out")],
        )
        return load_pipeline(saved(tmp_path, document), root=str(root))

    write(root, "in/a.txt", "text")
    load("one").build(engine=engine)  # type: ignore[attr-defined]
    assert statuses(load("one")) == {"out a": "fresh"}  # type: ignore[arg-type]
    assert [each.code for each in load("two").why("out/a").standing.causes] == ["config_changed"]  # type: ignore[attr-defined]


def test_a_function_runs_only_if_its_module_is_allowed(tmp_path: Path, root: Path) -> None:
    document = _document(
        SCAN,
        {"id": "out", "typeId": "state_transform", "data": {"output": "out/{{$.entity.id}}", "transform": "os:system"}},
        connections=[("scan", "out")],
    )
    with pytest.raises(DocumentError, match="is not registered here"):
        load_pipeline(saved(tmp_path, document), root=str(root))


def test_pipelines_that_share_a_pattern_are_connected_at_once(tmp_path: Path, root: Path, engine: Engine) -> None:
    blog = load_pipeline(EXAMPLES / "auto_blog.json", root=str(root), handlers=HANDLERS)
    podcast = load_pipeline(EXAMPLES / "daily_podcast.yaml", root=str(root), handlers=HANDLERS)
    reports = []
    with Watcher([podcast, blog], engine, on_build=reports.append) as watcher:
        for scanner in watcher.scanners:
            scanner.scan()
        write(root, "daily/2026-01-15/notes.txt", "Rain and wind and more rain before the storm came.")
        watcher.changed([str(root / "daily/2026-01-15/notes.txt")])
        watcher.pass_on()
    made = [unit for report in reports for unit in report.produced]
    assert made == ["summary 2026-01-15", "blog 2026-01-15", "podcast 2026-01-15", "notes 2026-01-15"]


def test_a_saved_pipeline_is_found_by_name_and_version(tmp_path: Path, engine: Engine) -> None:
    file = tmp_path / "copies.json"

    def save(word: str) -> SavedDocument:
        data = {
            "mode": "pipeline", "stateRoot": str(tmp_path / "root"),
            "nodes": [
                {"id": "in", "typeId": "state_scan", "data": {"pattern": "in/{x}"}},
                {"id": "out", "typeId": "state_write", "data": {"path": "out/{{ $.entity.id }}", "content": word}},
            ],
            "connections": [{"sourceNodeId": "in", "targetNodeId": "out"}],
        }  # fmt: skip
        file.write_text(json.dumps(data))
        return save_pipeline(engine.store, str(file))

    write(tmp_path / "root", "in/a", "text")
    assert [str(save("one")), str(save("two")), str(save("one"))] == ["copies@1", "copies@2", "copies@1"]
    assert stored_pipeline(engine.store, "copies@1").build(engine=engine).produced == ("out a",)
    assert (tmp_path / "root/out/a").read_text() == "one"
    assert stored_pipeline(engine.store, "copies").build(engine=engine).produced == ("out a",)
    assert (tmp_path / "root/out/a").read_text() == "two"
    Documents(engine.store, HANDLERS, "pipeline").activate("copies@1")
    assert stored_pipeline(engine.store, "copies").build(engine=engine).produced == ("out a",)
    assert (tmp_path / "root/out/a").read_text() == "one"
    with pytest.raises(InputError, match=r"no pipeline 'copy' is stored here; did you mean 'copies'\?"):
        stored_pipeline(engine.store, "copy")


def test_a_child_process_reads_a_saved_pipeline_that_its_parent_was_given(
    tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = {
        "id": "out",
        "typeId": "state_transform",
        "data": {"input": "in/{x}", "output": "out/{x}", "transform": "compute"},
    }
    data = {"mode": "pipeline", "name": "named", "stateRoot": str(tmp_path / "root"), "nodes": [node]}
    (tmp_path / "any.json").write_text(json.dumps(data))
    save_pipeline(engine.store, str(tmp_path / "any.json"))
    monkeypatch.setenv("STEPWELL_STORE", f"sqlite:///{tmp_path}/engine.db")
    root_id = stored_pipeline(engine.store, "named").store.root_id
    given = GivenPipelines([stored_pipeline(engine.store, "named")], lambda module: False)
    child = pickle.loads(pickle.dumps(given))
    assert child.find("stored:named@1", "named", root_id, "out").name == "named"


def test_the_schema_has_every_field_that_is_read() -> None:
    schema = any_schema(Handlers())
    assert set(schema["then"]["properties"]) == {info.alias for info in PipelineForm.model_fields.values()}
    kinds = {
        each["if"]["properties"]["typeId"]["const"]: set(each["then"]["properties"]["data"]["properties"])
        for each in schema["$defs"]["stateNode"]["allOf"]
    }
    assert kinds == {
        kind: {info.alias or name for name, info in form.model_fields.items()} for kind, form in DATA.items()
    }
    assert schema["else"]["properties"]["mode"]["const"] == "workflow"


@pytest.mark.parametrize(
    ("names", "problem"),
    [(("same", "same"), "another node has this name"), (("one", "entity"), "expected a name of letters, digits and _")],
)
def test_each_node_has_a_name_of_its_own(tmp_path: Path, root: Path, names: tuple[str, str], problem: str) -> None:
    scans = [
        {"id": str(number), "typeId": "state_scan", "name": name, "data": {"pattern": f"in{number}/{{x}}"}}
        for number, name in enumerate(names)
    ]
    with pytest.raises(DocumentError, match=problem):
        load_pipeline(saved(tmp_path, _document(*scans, connections=[])), root=str(root))


def test_a_type_of_the_document_is_found_wherever_its_node_is_written(
    tmp_path: Path, root: Path, engine: Engine
) -> None:
    file = saved(
        tmp_path,
        _document(
            {"id": "copy", "typeId": "state_write", "data": {"path": "copy/{{$.read.x}}"}},
            {"id": "read", "typeId": "state_read", "data": {"stateType": "article"}},
            {"id": "make", "typeId": "state_write", "name": "article", "data": {"path": "articles/{{$.pages.x}}.md"}},
            SCAN,
            connections=[("scan", "make"), ("read", "copy")],
        ),
    )
    write(root, "in/a.txt", "text")
    assert set(load_pipeline(file, root=str(root)).build(engine=engine).produced) == {"article a", "copy a"}
    assert (root / "copy/a").read_text() == "text"


def test_a_node_that_reads_a_type_made_below_it_is_a_cycle(tmp_path: Path, root: Path) -> None:
    file = saved(
        tmp_path,
        _document(
            {"id": "read", "typeId": "state_read", "data": {"stateType": "article"}},
            {"id": "article", "typeId": "state_write", "data": {"path": "articles/{{$.read.id}}.md"}},
            connections=[("read", "article")],
        ),
    )
    with pytest.raises(DocumentError, match=r"the nodes (article → read → article|read → article → read) form a cycle"):
        load_pipeline(file, root=str(root))


def test_a_stage_that_does_not_fit_an_unknown_type_names_it(tmp_path: Path, root: Path) -> None:
    """Without a pipeline that makes it, its only variable is `id`."""
    file = saved(
        tmp_path,
        _document(
            SCAN,
            {"id": "allowed", "typeId": "state_gate", "data": {"stateType": "permission"}},
            {"id": "out", "typeId": "state_write", "data": {"path": "out/{{$.pages.x}}"}},
            connections=[("scan", "out"), ("allowed", "out")],
        ),
    )
    with pytest.raises(DocumentError, match=r"does not name \{id\}.*known to make 'permission' \(allowed\)"):
        load_pipeline(file, root=str(root))


def shout(text: str) -> str:
    return f"{text}!"


def announce() -> str:
    return "said"


def both(one: str = "one", other: str = "other", *, input: str, entity: Entity) -> str:
    return f"{one} {other} {input} {entity.id}"


@pytest.mark.parametrize(("function", "made"), [("shout", "text!"), ("announce", "said"), ("both", "one other text a")])
def test_a_function_gets_the_input_as_its_only_parameter_of_another_name(
    tmp_path: Path, root: Path, engine: Engine, function: str, made: str
) -> None:
    data = {"output": "out/{{$.pages.x}}", "transform": f"{__name__}:{function}"}
    node = {"id": "out", "typeId": "state_transform", "data": data}
    file = saved(tmp_path, _document(SCAN, node, connections=[("scan", "out")]))
    write(root, "in/a.txt", "text")
    report = load_pipeline(file, root=str(root), jobs=[__name__]).build(engine=engine)
    assert report.failed == {}
    assert (root / "out/a").read_text() == made


def test_the_stages_of_a_document_are_connected_once(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connecting compares each stage with every other one. Once for each stage, 600 of them took minutes."""
    sizes = []
    monkeypatch.setattr(definition, "connect", lambda stages, name: sizes.append(len(stages)) or connect(stages, name))
    nodes = [{"id": f"w{each}", "typeId": "state_write", "data": {"path": f"out{each}/{{x}}"}} for each in range(20)]
    connections = [("scan", "w0"), *((f"w{each}", f"w{each + 1}") for each in range(19))]
    pipeline = load_pipeline(saved(tmp_path, _document(SCAN, *nodes, connections=connections)), root=str(root))
    assert [*pipeline.stages] == [f"w{each}" for each in range(20)]
    assert sizes == [20]


def test_a_chain_of_nodes_may_be_longer_than_python_calls_are_deep(tmp_path: Path, root: Path) -> None:
    count = sys.getrecursionlimit() + 10
    nodes = [{"id": f"r{each}", "typeId": "state_read", "data": {"path": f"in/{each}"}} for each in range(count)]
    connections = [(f"r{each + 1}", f"r{each}") for each in range(count - 1)]
    assert load_pipeline(saved(tmp_path, _document(*nodes, connections=connections)), root=str(root)).stages == {}
