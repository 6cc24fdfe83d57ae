"""Watching: at once after a change, without a full scan; triggers start workflows once."""

from __future__ import annotations

import random
import shutil
import threading
import time
from pathlib import Path

import pytest

from stepwell import Engine, Pipeline
from stepwell.errors import DefinitionError
from stepwell.pipeline.building.build import BuildReport, Scanner
from stepwell.pipeline.building.watch import Watcher
from stepwell.pipeline.connected import check_together
from tests.pipeline.blog import Clock, Ledger, make_blog, write

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


def _make_many_kinds(root: Path) -> Pipeline:
    """Directories, members and collections, each read by another stage."""
    pipeline = Pipeline("kinds", root=root)

    @pipeline.stage(input="notes/{day}/", output="site/{day}/", version="1")
    def site(notes: Path, out: Path) -> None:
        for file in notes.iterdir():
            (out / file.name).write_text(file.read_text().upper())

    @pipeline.stage(input="site/{day}/one.txt", output="pages/{day}/page.txt", version="1")
    def page(text: str) -> str:
        if "BOOM" in text:
            raise ValueError(text)
        return text

    @pipeline.stage(input="pages/{day}/", output="parts/{day}/{n}.txt", version="1")
    def parts(pages: Path) -> dict[int, str]:
        return dict(enumerate((pages / "page.txt").read_text().split()))

    @pipeline.stage(input="parts/{day}/{n}.txt", output="all.txt", collect=["day", "n"], version="1")
    def everything(texts: list[str]) -> str:
        return " ".join(texts)

    @pipeline.stage(input={"notes": "notes/{day}/*.txt", "style": "style.txt"}, output="texts/{day}.txt", version="1")
    def text(notes: list[str], style: str) -> str:
        return style.join(notes)

    return pipeline


@pytest.mark.parametrize("seed", range(3))
def test_events_come_to_the_same_as_a_look_at_everything(root: Path, engine: Engine, seed: int) -> None:
    chance, place = random.Random(seed), root.resolve()
    write(root, "style.txt", "-")
    for day in "abc":
        write(root, f"notes/{day}/one.txt", f"first {day}")
    with Scanner(_make_many_kinds(root), engine) as scanner:
        scanner.scan()
        for _ in range(14):
            day, name = chance.choice("abc"), chance.choice(("one.txt", "two.txt"))
            changed = [f"notes/{day}/{name}"]
            match chance.choice(
                ("write", "boom", "remove", "directory", "edit", "lose", "style", "invalidate", "clean")
            ):
                case "write":
                    write(root, changed[0], chance.choice(("first", "second third", "third")))
                case "boom":
                    write(root, changed[0], "boom")
                case "remove":
                    (root / changed[0]).unlink(missing_ok=True)
                case "directory":
                    changed = [f"notes/{day}"]
                    if (root / changed[0]).exists():
                        shutil.rmtree(root / changed[0])
                    elif chance.random() < 0.5:
                        (root / changed[0]).mkdir()
                    else:
                        write(root, f"notes/{day}/one.txt", "again")
                case "edit":
                    changed = [chance.choice((f"site/{day}/one.txt", f"pages/{day}/page.txt", f"parts/{day}/0.txt"))]
                    if (root / changed[0]).exists():
                        write(root, changed[0], "by hand")
                case "lose":
                    changed = [chance.choice((f"site/{day}", f"parts/{day}"))]
                    shutil.rmtree(root / changed[0], ignore_errors=True)
                case "style":
                    changed = ["style.txt"]
                    write(root, changed[0], chance.choice("-+"))
                case "invalidate":
                    changed = ["all.txt", ".manifest.json", ".manifest.log"]
                    if (root / "all.txt").exists():
                        _make_many_kinds(root).invalidate("everything")
                case "clean":
                    gone = _make_many_kinds(root).clean()
                    changed = [path.removesuffix("/") for path in gone] + [
                        f"{folder.relative_to(place)}/.manifest.{kind}".removeprefix("./")
                        for folder in place.rglob("*")
                        if folder.is_dir()
                        for kind in ("json", "log")
                    ]
            scanner.changed(changed)
            seen, now = scanner.view, _make_many_kinds(root).view()
            assert seen is not None
            assert seen.status().to_dict() == now.status().to_dict()
            assert {u.id: u.outputs for u in seen.model.all_units()} == {u.id: u.outputs for u in now.model.all_units()}
            assert seen.snapshot.records == now.snapshot.records


def test_what_backs_off_is_looked_at_when_it_is_due_and_not_before(root: Path, engine: Engine) -> None:
    clock = Clock()
    reports: list[BuildReport] = []
    blog = make_blog(root, clock=clock)
    write(root, f"daily/{A}/a.txt", "boom")
    with Watcher([blog], engine, interval=3_600, on_build=reports.append) as watcher:
        watcher._scan_all()
        for seconds, scans in ((0, 1), (59, 1), (60, 2)):
            clock.now = 1_800_000_000.0 + seconds
            watcher._turn([])
            assert len(reports) == scans


def test_a_directory_that_appears_is_an_entity_although_it_has_no_file(root: Path, engine: Engine) -> None:
    pipeline = Pipeline("p", root=root)
    pipeline.stage("name", input="in/{x}/", output="out/{x}.txt", version="1")(lambda folder: folder.name)
    with Scanner(pipeline, engine) as scanner:
        scanner.scan()
        (root / "in/new").mkdir(parents=True)
        assert scanner.changed(["in/new"]).produced == ("name new",)
