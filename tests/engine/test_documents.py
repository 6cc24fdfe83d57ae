"""Documents run as everything else does: rendered before the body, retried, cancelled, forked, replayed, repaired."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepwell import Document, Engine, InputError, RunConflict, RunFailed, Workflow, handler, step
from stepwell.define.code.handled import HandledBody
from stepwell.engine.reports.replay import replay_cassette
from stepwell.errors import BadCassette, GraphError, MissingJob
from stepwell.handlers import Handlers
from stepwell.history.replay.loading import load_cassette

JOBS = "tests.engine.document_jobs"
GREET: dict[str, Any] = {
    "name": "greet",
    "input": {
        "properties": {"name": {"type": "string"}, "times": {"type": "integer", "default": 2}},
        "required": ["name"],
    },
    "nodes": [
        {"id": "hello", "handler": "transform", "config": {"template": "Hello {{ input.name }}"}},
        {"id": "count", "handler": "compute", "config": {"expression": "input.times + 1"}},
        {
            "id": "all",
            "handler": "transform",
            "config": {"template": {"text": "{{ hello.result }}!", "n": "{{ count.result }}"}},
            "dependencies": ["hello", "count"],
        },
    ],
}


def document(*nodes: dict[str, Any], **more: Any) -> Document:
    return Document({"name": "test", "nodes": list(nodes), **more})


def job(name: str, node: str, *dependencies: str, **config: Any) -> dict[str, Any]:
    return {"id": node, "handler": f"{JOBS}:{name}", "config": config, "dependencies": list(dependencies)}


@pytest.fixture(params=["memory", "sqlite"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/runs.db"
    with Engine(url, jobs=[JOBS]) as engine:
        yield engine


def test_values_flow_from_node_to_node_with_their_types(engine: Engine) -> None:
    run = engine.run(Document(GREET), input={"name": "Ann"})
    assert run.outputs["all"] == {"result": {"text": "Hello Ann!", "n": 3}}


def test_the_config_is_kept_as_it_was_rendered(engine: Engine) -> None:
    run = engine.run(Document(GREET), input={"name": "Ann"})
    (node,) = [each for each in run.nodes() if each.id == "all"]
    assert node.attempts[0].outcome["config"] == {"template": {"text": "Hello Ann!", "n": 3}}


def test_a_config_without_templates_is_not_kept_twice(engine: Engine) -> None:
    run = engine.run(document({"id": "a", "handler": "transform", "config": {"template": 1}}))
    assert run.nodes()[0].attempts[0].outcome == {}


def test_a_large_config_is_not_kept(engine: Engine) -> None:
    node = {"id": "a", "handler": "transform", "config": {"template": "{{ 'x' * 100000 }}"}}
    (only,) = engine.run(document(node)).nodes()
    assert only.attempts[0].outcome["config"] == {"bytes": 100_015}


def test_the_input_is_held_against_its_schema_before_anything_is_stored(engine: Engine) -> None:
    with pytest.raises(InputError, match=r"\$\.input\.nam: unknown field; did you mean 'name'") as told:
        engine.start(Document(GREET), input={"nam": "Ann", "times": "x"})
    assert "$.input.name: this field is missing" in str(told.value)
    assert "$.input.times: expected an integer" in str(told.value)
    assert engine.runs() == []
    with pytest.raises(InputError, match="input= is for documents"):
        engine.start(Simple(), input={})


class Simple(Workflow):
    @step
    def only(self) -> None: ...


def test_a_template_that_cannot_be_rendered_fails_its_node_at_once_and_the_worker_goes_on(engine: Engine) -> None:
    bad = {"id": "a", "handler": "transform", "config": {"template": "{{ input.nothing.at.all }}"}, "retry": 5}
    with pytest.raises(RunFailed, match="no field 'nothing'") as told:
        engine.run(document(bad))
    assert "$.template" in str(told.value)
    (node,) = engine.get(told.value.run_id).nodes()
    assert len(node.attempts) == 1
    slow = {"id": "a", "handler": "compute", "config": {"expression": "9**9**9"}}
    with pytest.raises(RunFailed, match="too large"):
        engine.run(document(slow))
    assert engine.run(Document(GREET), input={"name": "x"}).outputs["count"] == {"result": 3}


def test_what_is_rendered_is_checked_before_the_handler_gets_it(engine: Engine) -> None:
    node = {"id": "a", "handler": "aggregate", "config": {"how": "{{ input.how }}"}}
    assert engine.run(document(node), input={"how": "list"}).outputs["a"] == {"result": [], "count": 0}
    with pytest.raises(RunFailed, match="aggregate cannot work with its config"):
        engine.run(document(node), input={"how": "anyhow"})


def test_functions_of_allowed_modules_are_handlers_too(engine: Engine) -> None:
    made = document(
        job("double", "a", number="{{ input.n }}"),
        job("twice", "b", "a", number="{{ a.result }}"),
        job("later", "c", "b", text="{{ b.run }}"),
    )
    run = engine.run(made, input={"n": 4}, run_id="r-1")
    assert run.outputs["c"] == "R-1"
    assert (run.output("a"), run.output("b")) == (8, {"total": 16, "run": "r-1"})


def test_other_functions_are_not_imported(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "harmful.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    for address in ("harmful:anything", "os:system", f"{JOBS}:Path", f"{JOBS}:time.sleep"):
        with pytest.raises(MissingJob, match=r"not registered|which is not allowed"):
            engine.start(document({"id": "a", "handler": address, "config": {}}))
    assert engine.runs() == []


def test_what_a_body_does_to_its_config_nobody_else_sees(engine: Engine) -> None:
    made = document(job("spoil", "a", data="{{ input.data }}"), job("spoil", "b", "a", data="{{ input.data }}"))
    run = engine.run(made, input={"data": [1]})
    assert (run.output("a"), run.output("b"), run.input) == (2, 2, {"data": [1]})


def test_tags_of_a_document_are_those_of_its_runs(engine: Engine) -> None:
    made = Document({**GREET, "tags": {"team": "web", "kind": "letter"}})
    run = engine.run(made, input={"name": "x"}, tags={"kind": "card"})
    assert dict(run.row.tags) == {"team": "web", "kind": "card"}
    assert dict(engine.run(Document({**GREET, "tags": ["a", "a"]}), input={"name": "x"}).row.tags) == {}


def test_a_large_input_is_not_copied_for_every_node(engine: Engine) -> None:
    nodes = [{"id": f"n{i}", "handler": "transform", "config": {"template": "{{ input.name }}"}} for i in range(200)]
    large = {"name": "x", "data": [{"a": [1, 2, 3]}] * 50_000}
    start = time.process_time()
    engine.run(document(*nodes), input=large)
    assert time.process_time() - start < 10  # copying it 200 times takes a minute


def test_a_function_may_have_a_process_and_its_config_is_rendered_and_kept(engine: Engine) -> None:
    made = document(
        job("fail_unless", "gate", file="{{ input.file }}"), job("double", "a", "gate", number="{{ input.n }}")
    )
    run = engine.run(made, input={"file": "/nowhere", "n": 21}, check=False)
    form = run.export_graph()
    form["nodes"]["a"]["body"] = "process"
    form["nodes"]["gate"]["args"] = {"file": __file__}
    run.import_graph(form).retry().wait()
    assert run.outputs["a"] == 42
    (node,) = [each for each in run.nodes() if each.id == "a"]
    assert node.attempts[-1].outcome == {"config": {"number": 21}}


def test_parents_come_in_the_order_of_the_document_also_after_a_restart(tmp_path: Path) -> None:
    nodes = [
        *({"id": each, "handler": "transform", "config": {"template": each}} for each in "cab"),
        {"id": "list", "handler": "aggregate", "config": {"how": "list"}, "dependencies": ["c", "a", "b"]},
    ]
    url = f"sqlite:///{tmp_path}/runs.db"
    with Engine(url) as engine:
        run = engine.run(document(*nodes))
        assert run.output("list")["result"] == ["c", "a", "b"]
    with Engine(url) as engine:
        again = engine.get(run.id).reattempt("list").wait()
        assert again.output("list")["result"] == ["c", "a", "b"]


# Everything that can be asked of a run


def test_only_what_failed_is_done_again(engine: Engine, tmp_path: Path) -> None:
    made = document(
        job("count", "a", file=str(tmp_path / "counted")),
        job("fail_unless", "b", "a", file=str(tmp_path / "there")),
        job("count", "c", "b", file=str(tmp_path / "after")),
    )
    run = engine.run(made, check=False)
    assert str(run.status) == "FAILED"
    (tmp_path / "there").touch()
    run.retry().wait()
    assert (run.output("a"), run.output("b"), run.output("c")) == (1, "there", 1)


def test_a_document_is_paused_resumed_and_cancelled(engine: Engine, tmp_path: Path) -> None:
    gate = str(tmp_path / "gate")
    made = document(job("wait_for", "a", file=gate), job("double", "b", "a", number=1))
    run = engine.start(made)
    run.pause()
    Path(gate).touch()
    assert run.resume().wait().output("b") == 2
    Path(gate).unlink()
    other = engine.start(made)
    threading.Timer(0.2, Path(gate).touch).start()
    other.cancel()
    assert str(other.wait().status) == "CANCELLED"


def test_a_fork_takes_a_changed_input_and_holds_it_against_the_schema(engine: Engine) -> None:
    run = engine.run(Document(GREET), input={"name": "Ann"})
    fork = run.fork("count", input={"times": 9}).wait()
    assert fork.output("all") == {"result": {"text": "Hello Ann!", "n": 10}}
    with pytest.raises(InputError, match="expected an integer"):
        run.fork("count", input={"times": "many"})


def test_a_run_and_its_cassette_are_replayed_byte_for_byte(engine: Engine, tmp_path: Path) -> None:
    run = engine.run(Document(GREET), input={"name": "Ann"})
    assert len(run.replay().executed) == 3
    file = run.export(tmp_path / "greet.cassette.json")
    assert len(replay_cassette(load_cassette(file)).executed) == 3
    changed = json.loads(Path(file).read_text().replace("Hello {{", "Hi {{"))
    Path(file).write_text(json.dumps(changed))
    with pytest.raises(BadCassette, match="it was changed"):
        replay_cassette(load_cassette(file))


def test_a_graph_is_repaired_by_hand_and_its_templates_are_checked_again(engine: Engine) -> None:
    made = document(
        {"id": "a", "handler": "transform", "config": {"template": {"x": 7}}},
        {"id": "b", "handler": "transform", "config": {"template": "{{ a.result.y }}"}, "dependencies": ["a"]},
    )
    run = engine.run(made, check=False)
    form = run.export_graph()
    for wrong, told in (
        ("{{ a.result.x", "the template is wrong"),
        ("{{ nobody.result }}", "names 'nobody', which is no node"),
        ("{{ b.result }}", "not one of its ancestors"),
    ):
        form["nodes"]["b"]["args"] = {"template": wrong}
        with pytest.raises(GraphError, match=told):
            run.import_graph(form)
    form["nodes"]["b"]["args"] = {"tempalte": 1}
    with pytest.raises(GraphError, match="did you mean 'template'"):
        run.import_graph(form)
    form["nodes"]["b"] |= {"args": {"template": "{{ a.result.x }}"}, "job": "nothing"}
    with pytest.raises(GraphError, match="there is no handler 'nothing'"):
        run.import_graph(form)
    form["nodes"]["b"]["job"] = "transform"
    run.import_graph(form).retry().wait()
    assert run.output("b") == {"result": 7}


def test_a_run_that_a_dead_process_left_is_served_by_any_worker_that_has_its_handlers(tmp_path: Path) -> None:
    url, gate = f"sqlite:///{tmp_path}/runs.db", tmp_path / "gate"
    gate.touch()
    with Engine(url, runner=None, jobs=[JOBS]) as engine:
        run = engine.start(Document(GREET), input={"name": "Ann"})
        other = engine.start(document(job("wait_for", "a", file=str(gate))))
    with Engine(url) as engine:
        engine.work(wait=0)
        assert engine.get(run.id).wait(30).output("hello") == {"result": "Hello Ann"}
        assert str(engine.get(other.id).status) == "PENDING", "its function is not allowed here"
    with Engine(url, jobs=[JOBS]) as engine:
        engine.work(wait=0)
        assert engine.get(other.id).wait(30).output("a") == "waited"


# Stored versions


def test_the_same_content_is_the_same_version_and_the_newest_is_active(engine: Engine) -> None:
    first = engine.save(Document(GREET))
    assert (str(first), first.is_new, first.active) == ("greet@1", True, 1)
    assert engine.save(Document(GREET)) == first._replace(is_new=False)
    changed = json.loads(json.dumps(GREET).replace("Hello", "Hi"))
    assert str(engine.save(Document(changed))) == "greet@2"
    assert engine.run("greet", input={"name": "x"}).output("hello") == {"result": "Hi x"}
    assert engine.run("greet@1", input={"name": "x"}).output("hello") == {"result": "Hello x"}
    assert engine.activate("greet@1") == first._replace(is_new=False)
    assert engine.run("greet", input={"name": "x"}).output("hello") == {"result": "Hello x"}
    (stored,) = engine.workflows()
    assert (stored.name, stored.version, stored.versions) == ("greet", 1, 2)
    engine.activate("greet")
    assert engine.workflows()[0].version == 2


def test_a_run_keeps_its_version(tmp_path: Path) -> None:
    url, gate = f"sqlite:///{tmp_path}/runs.db", tmp_path / "gate"
    second = {"id": "b", "handler": "transform", "config": {"template": "one"}, "dependencies": ["a"]}
    nodes = [job("wait_for", "a", file=str(gate)), second]
    with Engine(url, jobs=[JOBS]) as engine:
        engine.save(document(*nodes))
        run = engine.start("test")
        nodes[1]["config"] = {"template": "two"}
        engine.save(document(*nodes))
        run.pause()
        gate.touch()
        assert run.resume().wait().output("b") == {"result": "one"}
        assert run.graph.source is not None
        assert engine.parts.documents.version_of("test", run.graph.source.digest) == 1
        assert engine.run("test").output("b") == {"result": "two"}


def test_a_name_that_is_not_stored_is_told_with_what_may_have_been_meant(engine: Engine) -> None:
    with pytest.raises(InputError, match="stepwell save FILE"):
        engine.start("greet")
    engine.save(Document(GREET))
    with pytest.raises(InputError, match="did you mean 'greet'"):
        engine.start("gret")
    with pytest.raises(InputError, match="there is no version 7 of 'greet': there are 1 to 1"):
        engine.start("greet@7")
    with pytest.raises(InputError, match="there is no version 7"):
        engine.activate("greet@7")
    with pytest.raises(InputError, match="expected a Document to save"):
        engine.save(GREET)  # type: ignore[arg-type]


def test_the_same_run_id_is_the_same_run_only_with_the_same_document(engine: Engine) -> None:
    first = engine.run(Document(GREET), input={"name": "x"}, run_id="once")
    assert engine.run(Document(GREET), input={"name": "x"}, run_id="once").id == first.id
    changed = json.loads(json.dumps(GREET).replace("Hello", "Hi"))
    with pytest.raises(RunConflict, match="another graph"):
        engine.start(Document(changed), input={"name": "x"}, run_id="once")


def test_a_stored_document_whose_handler_is_gone_is_told(tmp_path: Path) -> None:
    @handler("shout")
    def shout(ctx: Any, config: Any) -> dict[str, Any]:
        return {"result": str(config["text"]).upper()}

    url = f"sqlite:///{tmp_path}/runs.db"
    given = Handlers([shout])
    with Engine(url, handlers=given) as engine:
        engine.save(
            Document({"name": "x", "nodes": [{"id": "a", "handler": "shout", "config": {"text": "hi"}}]}, given)
        )
        assert engine.run("x").output("a") == {"result": "HI"}
    with Engine(url) as engine, pytest.raises(GraphError, match=r"x@1 has 1 problem:\n.*there is no handler 'shout'"):
        engine.start("x")


# What a template can see


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[dict[str, Any]], dict[str, set[str]]]:
    """Nodes that each read some other node, and the ancestors of each."""
    count = draw(st.integers(2, 7))
    above: dict[str, set[str]] = {}
    nodes = []
    for place in range(count):
        name = f"n{place}"
        parents = [f"n{each}" for each in sorted(draw(st.sets(st.integers(0, place - 1), max_size=2)))] if place else []
        above[name] = {*parents, *(each for parent in parents for each in above[parent])}
        read = draw(st.lists(st.sampled_from([f"n{each}" for each in range(count)]), max_size=2, unique=True))
        template = ["".join(f"{{{{ {each}.result }}}}" for each in read), name]
        nodes.append(
            {
                "id": name,
                "handler": "transform",
                "config": {"template": template},
                "dependencies": parents,
                "_read": read,
            }
        )
    return nodes, above


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_rendering_only_ever_sees_ancestors(drawn: tuple[Any, dict[str, set[str]]]) -> None:
    nodes, above = drawn
    reads = {node["id"]: node["_read"] for node in nodes}
    data = [{key: value for key, value in node.items() if key != "_read"} for node in nodes]
    seen: dict[str, set[str]] = {}
    render = HandledBody.render

    def spy(self: HandledBody, input: Any, ctx: Any, outputs: Any) -> Any:
        seen[ctx.node_id] = set(outputs)
        return render(self, input, ctx, outputs)

    allowed = all(set(read) <= above[name] for name, read in reads.items())
    try:
        made = document(*data)
    except GraphError:
        assert not allowed, "a template that names ancestors only was refused"
        return
    assert allowed, "a template that names another node was accepted"
    with pytest.MonkeyPatch.context() as patch, Engine("memory://") as engine:
        patch.setattr(HandledBody, "render", spy)
        engine.run(made)
    assert {name: set(read) for name, read in reads.items()} == seen
    assert all(found <= above[name] for name, found in seen.items())
