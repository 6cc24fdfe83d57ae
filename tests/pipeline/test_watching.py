"""Watching: at once after a change, without a full scan; triggers start workflows once."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from stepwell import Builder, Engine, Handlers, Pipeline
from stepwell.define.document import Document
from stepwell.errors import DefinitionError
from stepwell.pipeline.building.build import BuildReport, Scanner
from stepwell.pipeline.building.watch import Watcher
from stepwell.pipeline.connected import check_together
from stepwell.triggers.definition import Trigger
from stepwell.triggers.kinds import TriggerError
from tests.pipeline.blog import Ledger, make_blog, write

A, B = "2026-01-15", "2026-01-16"


def test_a_change_is_built_as_soon_as_the_file_is_there(root: Path, engine: Engine) -> None:
    ledger = Ledger()
    reports: list[BuildReport] = []
    built = threading.Event()

    def told(report: BuildReport) -> None:
        reports.append(report)
        if report.produced:
            built.set()

    with Watcher([make_blog(root, ledger)], engine, interval=3_600, on_build=told) as watcher:
        thread = threading.Thread(target=watcher.run)
        thread.start()
        try:
            while not reports:
                assert thread.is_alive()
                time.sleep(0.01)
            give_up_at = time.monotonic() + 60
            write(root, f"daily/{A}/a.txt", "Hello")
            while not built.wait(0.5):  # until the system watches the folder
                (root / f"daily/{A}/a.txt").touch()
                assert time.monotonic() < give_up_at
        finally:
            watcher.stop()
            thread.join(60)
    assert not thread.is_alive()
    assert ledger.take() == [f"digest {A}", "index", f"summary {A}"]


def test_what_is_written_during_the_first_scan_is_built(
    root: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger()
    scan, built = Scanner.scan, threading.Event()

    def scan_and_write(scanner: Scanner) -> BuildReport:
        report = scan(scanner)
        write(root, f"daily/{A}/a.txt", "Hello")  # nobody looks again for an hour
        return report

    monkeypatch.setattr(Scanner, "scan", scan_and_write)
    (root / f"daily/{A}").mkdir(parents=True)
    told = lambda report: built.set() if report.produced else None  # noqa: E731
    with Watcher([make_blog(root, ledger)], engine, interval=3_600, on_build=told) as watcher:
        thread = threading.Thread(target=watcher.run)
        thread.start()
        try:
            assert built.wait(60)
        finally:
            watcher.stop()
            thread.join(60)
    assert ledger.take() == [f"digest {A}", "index", f"summary {A}"]


def test_one_event_needs_no_full_scan(root: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger()
    blog = make_blog(root, ledger)
    for date in (A, B):
        write(root, f"daily/{date}/a.txt", f"Hello {date}")
    with Scanner(blog, engine) as scanner:
        scanner.scan()
        ledger.take()
        monkeypatch.setattr(type(blog.store.files), "walk", lambda *_: pytest.fail("a full scan"))
        (root / f"daily/{A}/a.txt").touch()
        report = scanner.changed([f"daily/{A}/a.txt"])
        assert report.produced == ()
        write(root, f"daily/{A}/a.txt", "Other")
        scanner.changed([f"daily/{A}/a.txt"])
        assert ledger.take() == [f"digest {A}", "index", f"summary {A}"]
        write(root, "daily/2026-01-17/a.txt", "New")
        scanner.changed(["daily/2026-01-17/a.txt"])
        assert ledger.take() == ["digest 2026-01-17", "index", "summary 2026-01-17"]
        write(root, "daily/2026-01-18/a.txt", "Told as a folder")
        scanner.changed(["daily/2026-01-18"])
        assert ledger.take() == ["digest 2026-01-18", "index", "summary 2026-01-18"]
        (root / "index.html").unlink()
        scanner.changed(["index.html"])
        assert ledger.take() == ["index"]
        scanner.changed(["daily/2026-01-17/.DS_Store", "elsewhere/x", ".stepwell/lock"])
        assert ledger.take() == []


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
    make().build([f"digest {B}"], engine=engine, force=True)
    assert entities() == [A, B]
    write(root, f"daily/{A}/a.txt", "Changed")
    make().build(engine=engine)
    assert entities() == [A, A, B]
    blog = make_blog(root)
    blog.trigger(
        "all", state="final/{date}-digest.md", workflow=_publish, existing=True, filter="codeHash == currentCodeHash"
    )
    blog.build(engine=engine)
    assert entities() == [A, A, A, B, B]


def test_a_stored_trigger_starts_a_document_for_what_is_written_from_now_on(root: Path, engine: Engine) -> None:
    nodes = [{"id": "told", "handler": "compute", "config": {"expression": "input.entity ~ ' ' ~ input.contentHash"}}]
    engine.save(Document.parse(json.dumps({"name": "announce", "nodes": nodes}), Handlers()))

    def announced() -> list[str]:
        return sorted(run.wait().input["entity"] for run in engine.runs(workflow="announce"))

    write(root, f"daily/{A}/a.txt", "Hello")
    make_blog(root).build(engine=engine)
    engine.triggers.add(
        Trigger("new", "announce", state={"pipeline": "auto-blog", "stateType": "digest", "filter": "entity != 'no'"})
    )
    engine.triggers.add(Trigger("other", "announce", state={"pipeline": "another", "path": "final/{date}-digest.md"}))
    write(root, "daily/no/a.txt", "Hello")
    write(root, f"daily/{B}/a.txt", "Hello")
    make_blog(root).build(engine=engine)
    assert announced() == [B]
    make_blog(root).build([f"digest {B}"], engine=engine, force=True)
    assert announced() == [B]  # the same content
    write(root, f"daily/{B}/a.txt", "Changed")
    make_blog(root).build(engine=engine)
    assert announced() == [B, B]
    make_blog(root).build(engine=engine, existing=True)
    assert announced() == [A, B, B]
    engine.triggers.pause("new")
    write(root, f"daily/{B}/a.txt", "Changed again")
    make_blog(root).build(engine=engine)
    assert announced() == [A, B, B]
    with pytest.raises(TriggerError, match=r"(?s)pipeline, the name of a pipeline.*|did you mean 'stateType'"):
        Trigger("bad", "announce", state={"statetype": "digest"})


def test_pipelines_that_contradict_each_other_are_refused(root: Path) -> None:
    def make(name: str, source: str, target: str) -> Pipeline:
        pipeline = Pipeline(name, root=root)
        pipeline.stage(f"stage_{name}", input=source, output=target)(_same)
        return pipeline

    with pytest.raises(DefinitionError, match="could write one state"):
        check_together([make("a", "in/{x}", "out/{x}"), make("b", "more/{x}", "out/{x}")])
    with pytest.raises(DefinitionError, match=r"a#stage_a → b#stage_b → a#stage_a|b#stage_b → a#stage_a → b#stage_b"):
        check_together([make("a", "one/{x}", "two/{x}"), make("b", "two/{x}", "one/{x}")])
    with pytest.raises(DefinitionError, match="are called 'a'"):
        check_together([make("a", "one/{x}", "two/{x}"), make("a", "two/{x}", "three/{x}")])


def _same(text: str) -> str:
    return text
