"""Triggers for states: declared by a pipeline, in a document, or stored with the engine. All follow one rule."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stepwell import Builder, Engine, Handlers, Pipeline, Workflow, step
from stepwell.define.document import Document
from stepwell.errors import DefinitionError, DocumentError, TriggerError
from stepwell.pipeline.building.build import Scanner
from stepwell.pipeline.building.watch import Watcher
from stepwell.pipeline.finding import load_pipeline
from stepwell.pipeline.states.records import content_hash
from stepwell.triggers.definition import Trigger
from tests.engine.jobs import nothing
from tests.pipeline.blog import make_blog, write

A, B = "2026-01-15", "2026-01-16"


def _publish(event: dict[str, Any]) -> Builder:
    builder = Builder("publish")
    builder.node("note", job=note, args={"event": event})
    return builder


def note(event: dict[str, Any]) -> dict[str, Any]:
    return event


def test_a_trigger_starts_a_workflow_once_for_each_state_and_content(root: Path, engine: Engine) -> None:
    def make(**options: Any) -> Pipeline:
        blog = make_blog(root)
        blog.trigger("publish", state="digest", workflow=_publish, **options)
        return blog

    def entities() -> list[str]:
        runs = [run for run in engine.runs() if run.workflow == "publish"]
        return sorted(run.wait().output("note")["entity"] for run in runs)

    write(root, f"daily/{A}/a.txt", "Hello")
    make_blog(root).build(engine=engine)
    make().build(engine=engine)
    assert entities() == []  # it was there already
    make().build(engine=engine, existing=True)
    assert entities() == [A]
    make().build(engine=engine, existing=True)
    write(root, f"daily/{B}/a.txt", "Hello")
    make().build(engine=engine)
    assert entities() == [A, B]
    make().build(engine=engine)
    make().build(f"digest {B}", engine=engine, force=True)
    assert entities() == [A, B]
    write(root, f"daily/{A}/a.txt", "Changed")
    make().build(engine=engine)
    assert entities() == [A, A, B]
    blog = make_blog(root)
    blog.trigger(
        "all", state="final/{date}-digest.md", workflow=_publish, existing=True, filter="code_hash == current_code_hash"
    )
    blog.build(engine=engine)
    assert entities() == [A, A, A, B, B]


def test_a_stored_trigger_starts_a_document_for_what_is_written_from_now_on(root: Path, engine: Engine) -> None:
    nodes = [{"id": "told", "handler": "compute", "config": {"expression": "input.entity ~ ' ' ~ input.content_hash"}}]
    engine.save(Document.parse(json.dumps({"name": "announce", "nodes": nodes}), Handlers()))

    def announced() -> list[str]:
        return sorted(run.wait().input["entity"] for run in engine.runs(workflow="announce"))

    write(root, f"daily/{A}/a.txt", "Hello")
    make_blog(root).build(engine=engine)
    engine.triggers.add(
        Trigger("new", "announce", state={"pipeline": "auto-blog", "state_type": "digest", "filter": "entity != 'no'"})
    )
    engine.triggers.add(Trigger("other", "announce", state={"pipeline": "another", "path": "final/{date}-digest.md"}))
    write(root, "daily/no/a.txt", "Hello")
    write(root, f"daily/{B}/a.txt", "Hello")
    make_blog(root).build(engine=engine)
    assert announced() == [B]
    make_blog(root).build(f"digest {B}", engine=engine, force=True)
    assert announced() == [B]  # the same content
    write(root, f"daily/{B}/a.txt", "Changed")
    make_blog(root).build(engine=engine)
    assert announced() == [B, B]
    make_blog(root).build(engine=engine, existing=True)
    assert announced() == [A, B, B]
    engine.triggers.pause("new")
    write(root, f"daily/{B}/a.txt", "Changed again")
    make_blog(root).build(engine=engine)
    engine.triggers.resume("new")
    write(root, f"daily/{A}/a.txt", "Changed while it is active")
    make_blog(root).build(engine=engine)
    assert announced() == [A, A, B, B]  # B was changed while it was paused
    with pytest.raises(TriggerError, match=r"(?s)pipeline, the name of a pipeline.*|did you mean 'state_type'"):
        Trigger("bad", "announce", state={"statetype": "digest"})


def _save_announce(engine: Engine) -> None:
    nodes = [{"id": "told", "handler": "compute", "config": {"expression": "input.entity ~ ' ' ~ input.content_hash"}}]
    engine.save(Document.parse(json.dumps({"name": "announce", "nodes": nodes}), Handlers()))


def _announced(engine: Engine) -> list[str]:
    return sorted(run.wait().input["entity"] for run in engine.runs(workflow="announce"))


def _upper(text: str) -> str:
    return text.upper()


def _make_document(root: Path, name: str, nodes: list[dict[str, Any]], *connections: tuple[str, str]) -> Path:
    file = root.parent / f"{name}.json"
    ends = [{"sourceNodeId": one, "targetNodeId": other} for one, other in connections]
    file.write_text(json.dumps({"mode": "pipeline", "nodes": nodes, "connections": ends}))
    return file


SCAN = {"id": "notes", "typeId": "state_scan", "data": {"pattern": "notes/{day}.txt"}}
MAKE = {"id": "article", "typeId": "state_write", "data": {"path": "out/{{$.notes.id}}.md"}}


def _plain(root: Path) -> Pipeline:
    pipeline = Pipeline("p", root=root)
    pipeline.stage("article", input="notes/{day}.txt", output="out/{day}.md")(_upper)
    return pipeline


def _declared(root: Path, engine: Engine, **options: Any) -> Pipeline:
    pipeline = _plain(root)
    pipeline.trigger("told", state="article", workflow="announce", **options)
    return pipeline


def _in_a_document(root: Path, engine: Engine, **options: Any) -> Pipeline:
    data = {"stateType": "article", "workflow": "announce", **options}
    nodes = [SCAN, MAKE, {"id": "told", "typeId": "state_trigger", "data": data}]
    return load_pipeline(_make_document(root, "p", nodes, ("notes", "article")), root=str(root))


def _stored(root: Path, engine: Engine, **options: Any) -> Pipeline:
    engine.triggers.add(Trigger("told", "announce", state={"pipeline": "p", "state_type": "article", **options}))
    return _plain(root)


EVERY_KIND = pytest.mark.parametrize("make", [_declared, _in_a_document, _stored])
Make = Callable[..., Pipeline]


@EVERY_KIND
def test_a_trigger_fires_for_what_its_first_build_makes(root: Path, engine: Engine, make: Make) -> None:
    _save_announce(engine)
    write(root, "notes/one.txt", "1")
    make(root, engine).build(engine=engine)
    assert _announced(engine) == ["one"]
    write(root, "notes/two.txt", "2")
    make(root, engine).build(engine=engine)
    assert _announced(engine) == ["one", "two"]


@EVERY_KIND
def test_what_was_fresh_before_the_first_build_with_a_trigger_starts_nothing(
    root: Path, engine: Engine, make: Make
) -> None:
    _save_announce(engine)
    pipeline = _plain(root)
    if make is _in_a_document:
        pipeline = load_pipeline(_make_document(root, "p", [SCAN, MAKE], ("notes", "article")), root=str(root))
    write(root, "notes/one.txt", "1")
    pipeline.build(engine=engine)
    pipeline.invalidate("out/one.md")
    write(root, "notes/two.txt", "2")
    write(root, "notes/three.txt", "3")
    pipeline.build("article two", engine=engine)
    make(root, engine).build(engine=engine)
    assert _announced(engine) == ["one", "three"]
    make(root, engine).build(engine=engine, existing=True)
    assert _announced(engine) == ["one", "three", "two"]


@EVERY_KIND
def test_the_entity_has_fields_in_a_filter(root: Path, engine: Engine, make: Make) -> None:
    _save_announce(engine)
    for name in ("one", "two", "three"):
        write(root, f"notes/{name}.txt", name)
    condition = '$.entity.id != "one" and entity != "two" and $.entity.day == entity and $.codeHash == currentCodeHash'
    make(root, engine, filter=condition).build(engine=engine)
    assert _announced(engine) == ["three"]


@EVERY_KIND
@pytest.mark.parametrize("condition", ["$.nonsense == 3", "codeHash.x == 1", "entity ==", "input.entity == 'a'"])
def test_a_filter_that_cannot_be_evaluated_is_refused_where_it_is_written(
    root: Path, engine: Engine, make: Make, condition: str
) -> None:
    with pytest.raises((DefinitionError, DocumentError, TriggerError), match=r"(?s)told|filter"):
        make(root, engine, filter=condition)


def test_two_triggers_of_a_pipeline_have_two_names(root: Path, engine: Engine) -> None:
    with pytest.raises(DefinitionError, match="has a trigger 'told' already"):
        _declared(root, engine).trigger("told", state="article", workflow="other")


@pytest.mark.parametrize("make", [_declared, _in_a_document])
def test_a_filter_knows_the_variables_of_its_states(root: Path, engine: Engine, make: Make) -> None:
    with pytest.raises(DefinitionError, match=r"(?s)the entity has no 'dya'; did you mean 'day'"):
        make(root, engine, filter="$.entity.dya == 'one'")


def test_a_broken_trigger_fails_alone(root: Path, engine: Engine) -> None:
    _save_announce(engine)
    write(root, "notes/one.txt", "1")
    engine.triggers.add(Trigger("stray", "announce", state={"pipeline": "p", "state_type": "artcle"}))
    engine.triggers.add(Trigger("stored", "announce", state={"pipeline": "p", "path": "out/{day}.md"}))

    def make(*, mended: bool) -> Pipeline:
        pipeline = _plain(root)
        pipeline.trigger("a_number", state="article", workflow="announce", filter="entity > 3 or true")
        pipeline.trigger("bad", state="article", workflow="announce" if mended else "nowhere")
        pipeline.trigger("good", state="article", workflow="announce")
        return pipeline

    report = make(mended=False).build(engine=engine)
    assert report.failed.keys() == {"trigger a_number", "trigger bad", "trigger stray"}
    assert "pipeline 'p': out/one.md: cannot compare the text 'one'" in report.failed["trigger a_number"]
    assert "no stage reads or makes 'artcle'" in report.failed["trigger stray"]
    assert _announced(engine) == ["one", "one"]  # "good" and "stored"
    assert "trigger bad" not in make(mended=True).build(engine=engine).failed  # although nothing is stale
    assert _announced(engine) == ["one", "one", "one"]


def test_a_trigger_that_is_to_fire_for_existing_states_later_fires_for_its_baseline(root: Path, engine: Engine) -> None:
    _save_announce(engine)
    write(root, "notes/one.txt", "1")
    _plain(root).build(engine=engine)
    _declared(root, engine).build(engine=engine)
    write(root, "notes/two.txt", "2")
    _declared(root, engine, existing=True).build(engine=engine)
    assert _announced(engine) == ["one", "two"]


@EVERY_KIND
def test_a_trigger_for_existing_states_has_no_baseline(root: Path, engine: Engine, make: Make) -> None:
    _save_announce(engine)
    write(root, "notes/one.txt", "1")
    _plain(root).build(engine=engine)
    write(root, "notes/two.txt", "2")
    make(root, engine, existing=True).build(engine=engine)
    assert _announced(engine) == ["one", "two"]


class Announce(Workflow):
    day: str
    told = step(job=nothing)


def test_a_trigger_of_a_pipeline_is_one_as_any_other(root: Path, engine: Engine) -> None:
    """What it starts has the tags and the input of a trigger, also where that is a class, a document or a function."""
    nodes = [{"id": "told", "handler": "compute", "config": {"expression": "input.entity"}}]
    document = Document.parse(json.dumps({"name": "announce", "nodes": nodes}), Handlers())
    pipeline = _plain(root)
    pipeline.trigger("by_class", state="article", workflow=Announce, input={"day": "{{ state.entity }}"})
    pipeline.trigger("by_document", state="article", workflow=document)
    pipeline.trigger("by_function", state="article", workflow=_publish)
    assert [type(each.trigger) for each in pipeline.triggers.values()] == [Trigger] * 3
    write(root, "notes/one.txt", "1")
    assert pipeline.build(engine=engine).failed == {}
    runs = {dict(run.row.tags)["trigger"]: run.wait() for run in engine.runs() if run.workflow != "pipeline:p"}
    assert {name: run.workflow for name, run in runs.items()} == {
        "by_class": "Announce",
        "by_document": "announce",
        "by_function": "publish",
    }
    assert runs["by_class"].input["day"] == runs["by_document"].input["entity"] == "one"


def test_a_stored_trigger_that_failed_is_tried_again_although_nothing_is_stale(root: Path, engine: Engine) -> None:
    write(root, "notes/one.txt", "1")
    pipeline = _stored(root, engine)
    store = engine.store.url
    assert pipeline.build(engine=store).failed.keys() == {"trigger told"}
    assert pipeline.build(engine=store).failed.keys() == {"trigger told"}
    _save_announce(engine)
    assert pipeline.build(engine=store).failed == {}
    assert _announced(engine) == ["one"]


def test_a_baseline_has_all_states_although_a_build_looks_at_some(root: Path, engine: Engine) -> None:
    _save_announce(engine)
    for name in ("one", "two", "three"):
        write(root, f"notes/{name}.txt", name)
    _plain(root).build(engine=engine)
    write(root, "notes/two.txt", "changed")
    _stored(root, engine).build(engine=engine)
    _plain(root).build(engine=engine, force=True)
    assert _announced(engine) == ["two"]


def test_a_baseline_survives_a_crash_before_triggers_are_fired(
    root: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    _save_announce(engine)
    write(root, "notes/one.txt", "1")
    with monkeypatch.context() as patched:
        patched.setattr(Scanner, "_conclude", lambda *_, **__: pytest.fail("crashed"))
        with pytest.raises(pytest.fail.Exception, match="crashed"):
            _declared(root, engine).build(engine=engine)
    _declared(root, engine).build(engine=engine)
    assert _announced(engine) == ["one"]


def test_a_trigger_finds_states_of_another_document_of_its_root(root: Path, engine: Engine) -> None:
    """The example of the first design: one pipeline writes `article`, another is triggered by it."""
    _save_announce(engine)
    first = _make_document(root, "first", [SCAN, MAKE], ("notes", "article"))
    trigger = {"id": "on", "typeId": "state_trigger", "data": {"stateType": "article", "workflow": "announce"}}
    copy = {"id": "copy", "typeId": "state_write", "data": {"path": "copies/{{$.on.id}}.md"}}
    second = _make_document(root, "second", [trigger, copy], ("on", "copy"))
    write(root, "notes/one.txt", "1")

    def load(file: Path) -> Pipeline:
        return load_pipeline(file, root=str(root))

    waiting = _make_document(root, "waiting", [SCAN, trigger])
    assert [path for path, _ in load(waiting).status().problems] == ["trigger on"]
    load(waiting).build(engine=engine)
    load(first).build(engine=engine)
    load(second).build(engine=engine)
    assert (root / "copies/one.md").read_text() == "1"
    assert _announced(engine) == []  # for "second", the article was there before
    assert load(waiting).status().problems == ()
    load(waiting).build(engine=engine)
    assert _announced(engine) == ["one"]
    write(root, "notes/two.txt", "2")
    load(first).build(engine=engine)
    load(second).build(engine=engine)
    assert _announced(engine) == ["one", "two"]
    with Watcher([load(first), load(second)], engine, interval=3_600) as watcher:
        watcher._scan_all()
        write(root, "notes/three.txt", "3")
        watcher.changed([str(root.resolve() / "notes/three.txt")])
        watcher.pass_on()
    assert _announced(engine) == ["one", "three", "two"]


@pytest.mark.parametrize("state", ["article", "out/{day}.md"])
@pytest.mark.parametrize("own", [True, False])
def test_a_state_edited_by_hand_starts_nothing_until_it_is_made_again(
    root: Path, engine: Engine, state: str, own: bool
) -> None:
    """Nor does a deleted one; also where another pipeline of the root makes it."""
    _save_announce(engine)

    def build() -> None:
        maker, watching = _plain(root), Pipeline("watching", root=root)
        watching.stage("copy", input="other/{day}.txt", output="copied/{day}.txt")(_upper)
        (maker if own else watching).trigger("told", state=state, workflow="announce")
        if not own:
            watching.build(engine=engine)  # what was edited is not yet made again
        maker.build(engine=engine)
        watching.build(engine=engine)

    def told() -> list[dict[str, Any]]:
        return [run.wait().input for run in engine.runs(workflow="announce")]

    build()
    write(root, "notes/one.txt", "first")
    build()
    record = _plain(root).why("out/one.md").record
    assert record is not None
    assert told() == [
        {
            "entity": "one", "state_type": "article" if own else state, "path": "out/one.md",
            "code_hash": record.code_hash, "content_hash": content_hash(b"FIRST"),
        }
    ]  # fmt: skip
    write(root, "out/one.md", "by hand")
    build()
    (root / "out/one.md").unlink()
    build()
    assert len(told()) == 1
    write(root, "out/one.md", "by hand")
    write(root, "notes/one.txt", "second")
    build()
    assert {each["content_hash"] for each in told()} == {content_hash(b"FIRST"), content_hash(b"SECOND")}
    assert len(told()) == 2


def test_a_trigger_is_told_of_directories_and_of_files_that_no_stage_knows(root: Path, engine: Engine) -> None:
    _save_announce(engine)
    write(root, "notes/one.txt", "1")
    pipeline = Pipeline("p", root=root)

    @pipeline.stage(input="notes/{day}.txt", output="site/{day}/")
    def site(text: str, out: Path) -> None:
        (out / "index.html").write_text(text)

    pipeline.trigger("made", state="site", workflow="announce")
    pipeline.trigger("elsewhere", state="inbox/{mail}.txt", workflow="announce", existing=True)
    pipeline.trigger(
        "page", state="site/{day}/index.html", workflow="announce", filter="code_hash == current_code_hash"
    )
    write(root, "inbox/letter.txt", "Hello")
    assert pipeline.build(engine=engine).failed == {}
    assert _announced(engine) == ["letter", "one", "one"]
    write(root, "inbox/other.txt", "Hello")
    pipeline.build(engine=engine)
    assert _announced(engine) == ["letter", "one", "one", "other"]


def test_a_trigger_that_starts_nothing_is_a_problem_of_its_document(root: Path) -> None:
    trigger = {"id": "on", "typeId": "state_trigger", "data": {"stateType": "article"}}
    file = _make_document(root, "p", [SCAN, MAKE, trigger], ("notes", "article"))
    assert load_pipeline(file, root=str(root)).triggers == {}
    by_path = _plain(root)
    by_path.trigger("path", state="anything/{x}", workflow="announce")
    by_path.trigger("typo", state="artcle", workflow="announce")
    by_path.look_for_types()
    assert by_path.unknown_states() == {"typo": "artcle"}
    with pytest.raises(DocumentError, match="it starts nothing"):
        load_pipeline(file, root=str(root), strict=True)
    with pytest.raises(DefinitionError, match="trigger 'on' starts nothing"):
        _plain(root).trigger("on", state="article", workflow=None)


@pytest.mark.parametrize(("key", "value"), [("filter", "entity != 'one'"), ("existing", True)])
def test_a_trigger_without_a_workflow_has_no_options_of_one(root: Path, key: str, value: object) -> None:
    """They would be read over: what is connected to it works on every state."""

    def load(**more: object) -> Pipeline:
        trigger = {"id": "on", "typeId": "state_trigger", "data": {"stateType": "article", key: value, **more}}
        copy = {"id": "copy", "typeId": "state_write", "data": {"path": "copies/{{$.on.id}}.md"}}
        file = _make_document(root, "p", [SCAN, MAKE, trigger, copy], ("notes", "article"), ("on", "copy"))
        return load_pipeline(file, root=str(root))

    with pytest.raises(DocumentError, match=rf"nodes\[2\].data.{key} .*: `{key}` is of the `workflow` that it starts"):
        load()
    assert [*load(workflow="announce").triggers] == ["on"]


@EVERY_KIND
def test_content_of_the_baseline_starts_something_when_it_comes_back(root: Path, engine: Engine, make: Make) -> None:
    _save_announce(engine)
    write(root, "notes/one.txt", "1")
    pipeline = _plain(root)
    if make is _in_a_document:
        pipeline = load_pipeline(_make_document(root, "p", [SCAN, MAKE], ("notes", "article")), root=str(root))
    pipeline.build(engine=engine)
    for content, started in (("1", []), ("2", ["one"]), ("1", ["one", "one"]), ("2", ["one", "one"])):
        write(root, "notes/one.txt", content)
        make(root, engine).build(engine=engine)
        assert _announced(engine) == started
