"""Pipelines of one root that read each other's states: what is planned, and in which order they are built."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from stepwell import Builder, Engine, Handlers, Pipeline
from stepwell.define.document import Document
from stepwell.errors import DefinitionError, DocumentError
from stepwell.pipeline.building.build import Scanner
from stepwell.pipeline.building.verdict import list_everything
from stepwell.pipeline.building.watch import Watcher
from stepwell.pipeline.connected import drawing, in_order, links, share_types
from stepwell.pipeline.finding import load_pipeline, load_together
from stepwell.triggers.definition import Trigger
from tests.engine.jobs import nothing
from tests.forking.template import Template
from tests.pipeline.blog import Ledger, make_blog, write

A, B, C = "2026-01-15", "2026-01-16", "2026-01-17"


def make_podcast(root: Path, ledger: Ledger) -> Pipeline:
    podcast = Pipeline("podcast", root=root)

    @podcast.stage(input="final/{date}-digest.md", output="script/{date}.txt", version="1")
    def script(entity, text: str):
        ledger.ran.append(f"script {entity}")
        return text.upper()

    @podcast.stage(input="script/{date}.txt", output="audio/{date}/", version="1")
    def audio(entity, text: str, out: Path):
        ledger.ran.append(f"audio {entity}")
        (out / "a.wav").write_text(text)

    @podcast.stage(input="index.html", output="feed/{number}.xml", version="1")
    def feed(text: str):
        ledger.ran.append("feed")
        return {"1": text}

    return podcast


@pytest.mark.parametrize("change", ["first build", "one more", "changed", "same result", "nothing"])
def test_the_plan_of_a_pipeline_foresees_what_others_write_first(root: Path, engine: Engine, change: str) -> None:
    ledger = Ledger()
    blog, podcast = make_blog(root, ledger), make_podcast(root, ledger)
    write(root, f"daily/{A}/a.txt", "Hello A")
    write(root, f"daily/{B}/a.txt", "Hello B")
    if change != "first build":
        blog.build(engine=engine)
        podcast.build(engine=engine)
        ledger.take()
    if change == "one more":
        write(root, f"daily/{C}/a.txt", "Hello C")
    elif change in ("changed", "same result"):
        write(root, f"daily/{A}/a.txt", "Hello again" if change == "changed" else "HELLO A")

    first, second = blog.plan(), podcast.plan(after=[blog])
    named = [f"{each.stage} {each.entity}".strip() for each in (*second.will_run, *second.may_run)]
    blog.build(engine=engine)
    ledger.take()
    podcast.build(engine=engine)
    assert set(ledger.take()) <= set(named)
    every = {"first build": [A, B], "one more": [C], "changed": [A], "same result": [A]}.get(change, [])
    planned = [f"{stage} {day}" for stage in ("script", "audio") for day in every]
    assert sorted(named) == sorted([*planned, "feed"] if every else [])
    for state in second.may_run:
        if state.stage == "script":
            assert state.standing.causes[0].text.endswith(f"is to be written first (auto-blog#digest {state.entity})")
    assert podcast.plan(after=[blog]) == ((), (), ())
    assert bool(first.will_run) == bool(every)


def test_files_that_nobody_can_foresee_may_appear_in_the_plan_of_a_reader(root: Path) -> None:
    writer, reader = Pipeline("writer", root=root), Pipeline("reader", root=root)
    writer.stage("split", input="books/{book}.txt", output="chapters/{book}/{number}.txt")(_split)
    reader.stage("read", input="chapters/{book}/{number}.txt", output="read/{book}/{number}.txt")(_same)
    reader.stage("again", input="read/{book}/{number}.txt", output="again/{book}/{number}.txt")(_same)
    write(root, "books/moby.txt", "Call me Ishmael")
    writer.stage("both", input="books/{book}.txt", output={"toc": "toc/{book}", "pages": "pages/{book}/{number}"})(
        _both
    )
    writer.stage("number", input="pages/{book}/{number}", output="numbered/{book}/{number}")(_same)
    plan = reader.plan(after=[writer])
    assert (plan.will_run, plan.may_run, plan.may_appear) == ((), (), ("read", "again"))
    assert writer.plan().may_appear == ("number",)


def _split(text: str) -> dict[str, str]:
    return dict(enumerate(text.split()))  # type: ignore[arg-type]


def _both(text: str) -> dict[str, object]:
    return {"toc": text, "pages": _split(text)}


def _same(text: str) -> str:
    return text


def test_a_state_of_several_files_is_passed_on_as_soon_as_it_is_written(root: Path, engine: Engine) -> None:
    writer, reader = Pipeline("writer", root=root), Pipeline("reader", root=root)
    writer.stage("page", input="in/{x}.txt", output="site/{x}/", version="1")(_write_page)
    writer.stage("split", input="in/{x}.txt", output="words/{x}/{number}", version="1")(_split)
    reader.stage("size", input="site/{x}/", output="size/{x}", version="1")(_count)
    writer.stage("at_root", input="in/{x}.txt", output="{x}-{number}.md", version="1")(_split)
    reader.stage("copy", input="words/{x}/{number}", output="copy/{x}/{number}", version="1")(_same)
    reader.stage("upper", input="{x}-{number}.md", output="upper/{x}-{number}.md", version="1")(_same)
    with Watcher([writer, reader], engine, interval=3_600) as watcher:
        watcher._scan_all()
        write(root, "in/a.txt", "Hello there")
        watcher.changed([str(root.resolve() / "in/a.txt")])
        watcher.pass_on()
    assert (root / "size/a").read_text() == "1"
    assert (root / "copy/a/1").read_text() == "there"
    assert (root / "upper/a-1.md").read_text() == "there"


def _write_page(text: str, out: Path) -> None:
    (out / "index.html").write_text(text)


def _count(path: Path) -> str:
    return str(len(list(path.iterdir())))


TWO = """
from stepwell import Pipeline
writer, reader = Pipeline("writer", root="root"), Pipeline("reader", root="root")

@writer.stage(input="in/{x}.txt", output="out/{x}.txt")
def up(text: str) -> str:
    return text.upper()

@reader.stage(input="out/{x}.txt", output="read/{x}.txt")
def read(text: str) -> str:
    return text
"""


def test_connected_pipelines_are_planned_and_built_in_their_order(tmp_path: Path, template: Template) -> None:
    (tmp_path / "two.py").write_text(TWO)
    write(tmp_path / "root", "in/a.txt", "hello")

    def ask(*words: str) -> list[dict[str, list[str]]]:
        command = ["-m", "stepwell", "pipeline", "build", *words, "--json", "-p", "two:reader", "-p", "two:writer"]
        ended = template.run(command, cwd=tmp_path, env={**os.environ, "NO_COLOR": "1"}, timeout=100)
        assert ended.returncode == 0, ended.stderr
        found: list[dict[str, list[str]]] = json.loads(ended.stdout)
        return found

    first, second = ask("--dry-run")
    assert (len(first["will_run"]), len(second["will_run"]), len(second["may_run"])) == (1, 0, 1)
    assert [report["produced"] for report in ask()] == [["up a"], ["read a"]]


def test_the_drawing_of_pipelines_has_every_stage_and_every_way_between_them(root: Path) -> None:
    writer, reader = Pipeline("writer", root=root), Pipeline("reader", root=root)
    writer.stage("split", input="books/{book}.txt", output="chapters/{book}/{number}.txt")(_split)
    reader.stage("read", input="chapters/{book}/{number}.txt", output="read/{book}/{number}.txt")(_same)
    assert drawing([writer, reader]).splitlines() == [
        "flowchart LR",
        "  subgraph writer",
        '    n0["split"]',
        "  end",
        "  subgraph reader",
        '    n1["read"]',
        "  end",
        '  n2[/"books/{book}.txt"/]',
        "  n2 --> n0",
        '  n0 -->|"chapters/{book}/{number}.txt"| n1',
    ]


SCAN = {"id": "notes", "typeId": "state_scan", "data": {"pattern": "notes/{day}.txt"}}
MAKE = {"id": "make", "typeId": "state_write", "name": "article", "data": {"path": "articles/{{$.notes.day}}.md"}}
BOTH_ORDERS = pytest.mark.parametrize("order", [("first", "second"), ("second", "first")])


def _save(folder: Path, name: str, *nodes: dict[str, Any], connections: list[tuple[str, str]]) -> Path:
    ends = [{"sourceNodeId": one, "targetNodeId": other} for one, other in connections]
    document = {"mode": "pipeline", "stateRoot": str(folder / "root"), "nodes": nodes, "connections": ends}
    file = folder / f"{name}.json"
    file.write_text(json.dumps(document))
    return file


def _save_first(folder: Path) -> Path:
    return _save(folder, "first", SCAN, MAKE, connections=[("notes", "make")])


def _save_second(folder: Path, kind: str = "state_trigger", variable: str = "id") -> Path:
    """A document that copies the articles of another one, which it names by their type."""
    on = {"id": "on", "typeId": kind, "data": {"stateType": "article"}}
    content = "{{$.on.path}}: {{$.on.content}}"
    copy = {
        "id": "copy",
        "typeId": "state_write",
        "data": {"path": f"copies/{{{{$.on.{variable}}}}}", "content": content},
    }
    return _save(folder, "second", on, copy, connections=[("on", "copy")])


def _together(*files: Path) -> list[Pipeline]:
    """Load documents as commands do."""

    def load(file: Path, beside: list[Pipeline]) -> Pipeline:
        return load_pipeline(file, beside=beside)

    loaded = load_together([partial(load, file) for file in files])
    pipelines = [each for each in loaded if isinstance(each, Pipeline)]
    assert len(pipelines) == len(files), loaded
    share_types(pipelines)
    return pipelines


@BOTH_ORDERS
@pytest.mark.parametrize("variable", ["id", "day"])
def test_documents_connected_by_a_type_are_planned_and_built_on_a_fresh_root(
    tmp_path: Path, template: Template, order: tuple[str, str], variable: str
) -> None:
    _save_first(tmp_path)
    _save_second(tmp_path, variable=variable)
    write(tmp_path / "root", "notes/one.txt", "1")

    def ask(*words: str) -> list[dict[str, Any]]:
        named = [word for name in order for word in ("-p", f"{name}.json")]
        command = ["-m", "stepwell", "pipeline", *words, "--json", *named]
        ended = template.run(command, cwd=tmp_path, env={**os.environ, "NO_COLOR": "1"}, timeout=100)
        assert ended.returncode == 0, ended.stderr
        found: list[dict[str, Any]] = json.loads(ended.stdout)
        return found

    plans = ask("build", "--dry-run")
    assert [(len(each["will_run"]), len(each["may_run"])) for each in plans] == [(1, 0), (0, 1)]
    assert [each["writer"] for each in ask("graph")] == ["first#article"]
    assert [each["produced"] for each in ask("build")] == [["article one"], ["copy one"]]
    assert (tmp_path / "root/copies/one").read_text() == "articles/one.md: 1"
    assert [each["produced"] for each in ask("build")] == [[], []]


@BOTH_ORDERS
@pytest.mark.parametrize("kind", ["state_trigger", "state_read"])
def test_documents_connected_by_a_type_are_watched_on_a_fresh_root(
    tmp_path: Path, root: Path, engine: Engine, order: tuple[str, str], kind: str
) -> None:
    files = {"first": _save_first(tmp_path), "second": _save_second(tmp_path, kind, variable="day")}
    pipelines = _together(*(files[name] for name in order))
    with Watcher(pipelines, engine, interval=3_600) as watcher:
        watcher._scan_all()
        write(root, "notes/one.txt", "1")
        watcher.changed([str(root.resolve() / "notes/one.txt")])
        watcher.pass_on()
    assert (root / "copies/one").read_text() == "articles/one.md: 1"


def test_a_type_may_follow_from_a_type_of_a_third_pipeline(tmp_path: Path, root: Path, engine: Engine) -> None:
    read = {"id": "copies", "typeId": "state_read", "data": {"stateType": "copy"}}
    last = {"id": "last", "typeId": "state_write", "data": {"path": "last/{{$.copies.day}}"}}
    third = _save(tmp_path, "third", read, last, connections=[("copies", "last")])
    pipelines = _together(third, _save_second(tmp_path, variable="day"), _save_first(tmp_path))
    write(root, "notes/one.txt", "1")
    with Watcher(pipelines, engine, interval=3_600) as watcher:
        watcher._scan_all()
    assert (root / "last/one").read_text() == "articles/one.md: 1"


def test_a_watched_document_sees_at_once_what_another_process_makes(tmp_path: Path, root: Path, engine: Engine) -> None:
    """Also what was made before it knew that, or where, somebody makes such states."""
    second = load_pipeline(_save_second(tmp_path))
    first = _save_first(tmp_path)
    with Watcher([second], engine, interval=3_600) as watcher:
        watcher._scan_all()
        for place in ("articles/{{$.notes.day}}.md", "moved/{{$.notes.day}}.txt"):
            first.write_text(first.read_text().replace("articles/{{$.notes.day}}.md", place))
            for name in ("one", "two"):
                write(root, f"notes/{name}.txt", place)
            made = load_pipeline(first)
            assert made.build(engine=engine).produced == ("article one", "article two")
            paths = sorted(path for state in made.view().states() for path in state.outputs)
            watcher.changed([str(root.resolve() / paths[0])])
            assert [(root / f"copies/{name}").read_text() for name in ("one", "two")] == [
                f"{path}: {place}" for path in paths
            ]


def test_a_build_that_waited_sees_what_a_pipeline_made_meanwhile(tmp_path: Path, root: Path, engine: Engine) -> None:
    second = load_pipeline(_save_second(tmp_path))
    write(root, "notes/one.txt", "1")
    with Scanner(second, engine) as scanner:
        listed = list_everything(second)
        load_pipeline(_save_first(tmp_path)).build(engine=engine)
        assert scanner.scan(listed=listed).produced == ("copy one",)


def test_a_document_that_no_longer_fits_a_type_says_so_and_goes_on_when_it_does(
    tmp_path: Path, root: Path, engine: Engine
) -> None:
    first, file = _save_first(tmp_path), _save_second(tmp_path, variable="day")
    write(root, "notes/one.txt", "1")
    right = first.read_text()
    with pytest.raises(
        DocumentError, match=r"no field 'day'.*no pipeline in this root is known to make 'article' \(on\)"
    ):
        load_pipeline(file)
    load_pipeline(first).build(engine=engine)
    second = load_pipeline(file)
    first.write_text(right.replace("day", "date"))
    load_pipeline(first).build(engine=engine)
    for _ in range(2):
        with pytest.raises(DocumentError, match="no field 'day'"):
            second.build(engine=engine)
    first.write_text(right)
    load_pipeline(first).build(engine=engine)
    assert second.build(engine=engine).produced == ("copy one",)


def test_a_worker_that_read_a_document_too_early_finds_the_states_of_its_type(tmp_path: Path, root: Path) -> None:
    file, url = _save_second(tmp_path), f"sqlite:///{tmp_path}/engine.db"
    early = load_pipeline(file)
    write(root, "notes/one.txt", "1")
    with Engine(url) as engine:
        load_pipeline(_save_first(tmp_path)).build(engine=engine)
    with Engine(url, runner=None) as scanning, Engine(url, pipelines=[early]) as worker:
        build = threading.Thread(target=partial(load_pipeline(file).build, engine=scanning))
        build.start()
        while build.is_alive():
            worker.work(wait=0)
            build.join(0.1)
    assert (root / "copies/one").read_text() == "articles/one.md: 1"


def test_types_of_pipelines_given_together_are_noted_for_workers_elsewhere(
    tmp_path: Path, root: Path, engine: Engine
) -> None:
    second, _first = _together(_save_second(tmp_path), _save_first(tmp_path))
    second.build(engine=engine)
    assert load_pipeline(_save_second(tmp_path)).stages["copy"].inputs["input"].text == "articles/{day}.md"


def _publish(event: dict[str, Any]) -> Builder:
    builder = Builder("publish")
    builder.node("note", job=nothing)
    return builder


def _triggered(root: Path) -> dict[str, Pipeline]:
    first, second = Pipeline("first", root=root), Pipeline("second", root=root)
    first.stage("article", input="notes/{day}.txt", output="articles/{day}.md")(_same)
    second.trigger("told", state="article", workflow=_publish)
    return {"first": first, "second": second}


def _watch(pipelines: list[Pipeline], engine: Engine) -> None:
    with Watcher(pipelines, engine, interval=3_600) as watcher:
        watcher._scan_all()


def _build(pipelines: list[Pipeline], engine: Engine) -> None:
    share_types(pipelines)
    names = in_order([each.name for each in pipelines], [(each.writer, each.reader) for each in links(pipelines)])
    assert names == ["first", "second"]
    for each in sorted(pipelines, key=lambda pipeline: names.index(pipeline.name)):
        each.build(engine=engine)


@BOTH_ORDERS
@pytest.mark.parametrize("work", [_watch, _build])
@pytest.mark.parametrize("is_there", [True, False])
def test_a_trigger_fires_for_what_a_pipeline_given_with_it_makes_first(
    root: Path, engine: Engine, order: tuple[str, str], work: Callable[[list[Pipeline], Engine], None], is_there: bool
) -> None:
    write(root, "notes/one.txt", "1")
    if is_there:  # then it is of the baseline
        _triggered(root)["first"].build(engine=engine)
    write(root, "notes/two.txt", "2")
    given = _triggered(root)
    work([given[name] for name in order], engine)
    assert len([run for run in engine.runs() if run.workflow == "publish"]) == (1 if is_there else 2)


@BOTH_ORDERS
def test_a_stored_trigger_fires_for_what_is_made_after_it_was_added(
    root: Path, engine: Engine, order: tuple[str, str]
) -> None:
    """Whichever pipeline makes it, also while both are watched."""
    nodes = [{"id": "told", "handler": "compute", "config": {"expression": "input.entity"}}]
    engine.save(Document.parse(json.dumps({"name": "announce", "nodes": nodes}), Handlers()))
    given = _triggered(root)
    given["second"].stage("copy", input="articles/{day}.md", output="copies/{day}.md")(_same)
    write(root, "notes/one.txt", "1")
    with Watcher([given[name] for name in order], engine, interval=3_600) as watcher:
        watcher._scan_all()
        state = {"pipeline": "second", "state_type": "article"}
        engine.triggers.add(Trigger("stored", "announce", state=state))
        write(root, "notes/two.txt", "2")
        watcher.changed([str(root.resolve() / "notes/two.txt")])
        watcher.pass_on()
    assert [run.wait().input["entity"] for run in engine.runs(workflow="announce")] == ["two"]


def test_the_drawing_and_the_order_of_pipelines_count_triggers(root: Path) -> None:
    given = _triggered(root)
    pipelines = [given["second"], given["first"]]
    share_types(pipelines)
    assert [tuple(each) for each in links(pipelines)] == [
        ("first#article", "articles/{day}.md", "second#trigger told", "articles/{day}.md")
    ]
    assert drawing(pipelines).splitlines()[1:3] == ["  subgraph second", '    n0(["told"])']


def test_a_broken_pipeline_beside_another_one_does_not_stop_it(root: Path, engine: Engine) -> None:
    given = _triggered(root)
    given["second"].stage("broken", input="other/{x}", output="broken/{x}", version="1")(_same)

    def look() -> None:
        raise DefinitionError("its code cannot be read")

    given["second"].look = look  # type: ignore[method-assign]
    write(root, "notes/one.txt", "1")
    share_types([*given.values()])
    assert given["first"].build(engine=engine).produced == ("article one",)


def test_no_baseline_is_noted_of_a_pipeline_that_is_just_being_built(root: Path, engine: Engine) -> None:
    given = _triggered(root)
    write(root, "notes/one.txt", "1")
    share_types([*given.values()])
    with given["second"].store.lease("second", 0.0):
        assert given["first"].build(engine=engine).produced == ("article one",)
    assert given["second"].store.notes.read("triggers") == {}


def test_a_verdict_does_not_hold_when_a_type_that_a_trigger_awaits_is_found_elsewhere(
    root: Path, engine: Engine
) -> None:
    given = _triggered(root)
    second = given["second"]
    second.stage("copy", input="articles/{day}.md", output="copies/{day}.md")(_same)
    write(root, "articles/one.md", "1")
    second.build(engine=engine)
    share_types([*given.values()])  # the other pipeline was never built: no file has changed
    second.build(engine=engine, existing=False)
    assert "second/told articles/one.md" in second.store.notes.read("triggers")
