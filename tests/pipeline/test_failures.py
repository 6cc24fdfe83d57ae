"""What becomes of a stage that fails: back-off by the schedule, and nothing but its own entity is stopped."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from stepwell import Engine, Pipeline
from stepwell.pipeline.stage import BACK_OFF
from stepwell.pipeline.states.notes import read_failures
from tests.pipeline.blog import Clock, Ledger, causes, make_blog, statuses, write

A, B = "2026-01-15", "2026-01-16"


def test_a_failing_entity_stops_only_itself(root: Path, engine: Engine) -> None:
    ledger = Ledger()
    blog = make_blog(root, ledger)
    write(root, f"daily/{A}/a.txt", "boom")
    write(root, f"daily/{B}/a.txt", "Hello")
    report = blog.build(engine=engine)
    assert report.failed == {f"summary {A}": "boom"}
    assert statuses(blog) == {
        f"summary {A}": "failed",
        f"digest {A}": "blocked",
        f"summary {B}": "fresh",
        f"digest {B}": "fresh",
        "index": "blocked",
    }
    why = blog.why(f"final/{A}-digest.md")
    assert "boom" in why.standing.causes[0].text
    assert engine.get(report.runs[0]).status == "FAILED"  # a person who lists runs sees it, too


def _same(text: str) -> str:
    return text


def _boom(text: str) -> str:
    raise ValueError("boom")


@pytest.mark.parametrize("kind", ["files", "database"])
def test_pipelines_of_one_root_keep_their_failures_apart(root: Path, engine: Engine, kind: str) -> None:
    """Their stages have the same name and the same entities."""
    clock, where = Clock(), root if kind == "files" else f"sqlite:///{root}/states.db"
    pipelines: list[Pipeline] = []
    for name in ("bad", "good"):
        pipeline = Pipeline(name, root=where, clock=clock)
        pipeline.stage("copy", input="in/{x}", output=f"{name}/{{x}}", version="1")(_boom if name == "bad" else _same)
        pipelines.append(pipeline)
    bad, good = pipelines
    good.put("in/a", b"text")
    assert bad.build(engine=engine).failed.keys() == {"copy a"}
    assert statuses(good) == {"copy a": "stale"}
    assert good.retry() == []
    assert good.build(engine=engine).produced == ("copy a",)
    good.accept("copy a")
    assert bad.build(engine=engine).runs == ()
    assert statuses(bad) == {"copy a": "failed"}
    clock.now += BACK_OFF[0]
    bad.build(engine=engine)
    assert read_failures(bad.store.notes, "bad")["copy a"].attempts == 2
    assert bad.retry() == ["copy a"]


def test_back_off_to_the_second_and_then_failed_until_asked(root: Path, engine: Engine) -> None:
    clock, ledger = Clock(), Ledger()
    blog = make_blog(root, ledger, clock=clock)
    write(root, f"daily/{A}/a.txt", "boom")
    blog.build(engine=engine)
    assert ledger.take() == [f"summary {A}"]
    for number, delay in enumerate(BACK_OFF, 1):
        assert read_failures(blog.store.notes, blog.name)[f"summary {A}"].attempts == number
        clock.now += delay - 1
        assert statuses(blog)[f"summary {A}"] == "failed"
        blog.build(engine=engine)
        assert ledger.take() == []
        clock.now += 1
        assert causes(blog, f"daily/{A}/summary.txt")[-1] == "retry_due"
        blog.build(engine=engine)
        assert ledger.take() == [f"summary {A}"]
    clock.now += 10 * 86_400
    blog.build(engine=engine)
    assert ledger.take() == []
    assert read_failures(blog.store.notes, blog.name)[f"summary {A}"].next_retry_at is None
    assert blog.retry() == [f"summary {A}"]
    blog.build(engine=engine)
    assert ledger.take() == [f"summary {A}"]
    assert read_failures(blog.store.notes, blog.name)[f"summary {A}"].attempts == 1


def test_a_clock_that_jumps_back_does_not_repeat_or_lose_a_retry(root: Path, engine: Engine) -> None:
    clock, ledger = Clock(), Ledger()
    blog = make_blog(root, ledger, clock=clock)
    write(root, f"daily/{A}/a.txt", "boom")
    blog.build(engine=engine)
    ledger.take()
    clock.now -= 365 * 86_400
    blog.build(engine=engine)
    assert ledger.take() == []
    clock.now += 365 * 86_400 + 61
    blog.build(engine=engine)
    assert ledger.take() == [f"summary {A}"]


def test_changed_input_ends_a_back_off(root: Path, engine: Engine) -> None:
    ledger = Ledger()
    blog = make_blog(root, ledger)
    write(root, f"daily/{A}/a.txt", "boom")
    blog.build(engine=engine)
    write(root, f"daily/{A}/a.txt", "better")
    assert statuses(blog)[f"summary {A}"] == "stale"
    assert blog.build(engine=engine).ok
    assert read_failures(blog.store.notes, blog.name) == {}


def test_changed_code_and_config_end_a_back_off(root: Path, engine: Engine) -> None:
    def make(version: str, word: str) -> Pipeline:
        pipeline = Pipeline("p", root=root)
        pipeline.stage("fail", input="in/{x}", output="out/{x}", version=version, config={"word": word})(_fail_if_bad)
        return pipeline

    write(root, "in/a", "text")
    make("1", "bad").build(engine=engine)
    assert statuses(make("1", "bad")) == {"fail a": "failed"}
    assert statuses(make("2", "bad")) == {"fail a": "stale"}
    assert statuses(make("1", "good")) == {"fail a": "stale"}


def _fail_if_bad(text: str, config: dict[str, str]) -> str:
    if config["word"] == "bad":
        raise ValueError(text)
    return text


def test_a_stage_that_failed_and_has_an_old_output_keeps_it(root: Path, engine: Engine) -> None:
    ledger = Ledger()
    blog = make_blog(root, ledger)
    write(root, f"daily/{A}/a.txt", "Hello")
    blog.build(engine=engine)
    write(root, f"daily/{A}/a.txt", "boom")
    blog.build(engine=engine)
    assert (root / f"daily/{A}/summary.txt").read_text() == "hello"
    assert statuses(blog) == {f"summary {A}": "failed", f"digest {A}": "blocked", "index": "blocked"}


def test_the_engine_retries_within_a_run(root: Path, engine: Engine) -> None:
    tries: list[int] = []
    pipeline = Pipeline("p", root=root)

    @pipeline.stage(input="in/{x}", output="out/{x}", retry=3, version="1")
    def flaky(text: str, ctx) -> str:
        tries.append(ctx.attempt)
        if len(tries) < 2:
            raise ConnectionError("not now")
        return text

    write(root, "in/a", "text")
    assert pipeline.build(engine=engine).ok
    assert tries == [1, 2]
    assert not list(root.rglob(".stepwell-*-a"))


def test_a_body_that_takes_too_long_has_failed(root: Path, engine: Engine) -> None:
    import time

    pipeline = Pipeline("p", root=root)

    @pipeline.stage(input="in/{x}", output="out/{x}", timeout=0.2, version="1")
    def slow(text: str, entity) -> str:
        if entity.id == "slow":
            time.sleep(0.6)
        return text

    write(root, "in/slow", "text")
    write(root, "in/fast", "text")
    report = pipeline.build(engine=engine)
    assert set(report.failed) == {"slow slow"}
    assert report.produced == ("slow fast",)


def test_a_full_disk_fails_the_entity_and_shows_nothing_half_written(root: Path, engine: Engine) -> None:
    """A limit on the size of files is the disk that is full for large ones only."""
    import resource
    import signal

    pipeline = Pipeline("p", root=root)

    @pipeline.stage(input="in/{x}", output="out/{x}", version="1")
    def grow(text: str, entity) -> bytes:
        return b"x" * (200_000_000 if entity.id == "large" else 10)

    write(root, "in/large", "1")
    write(root, "in/small", "1")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000_000, before[1]))
    try:
        report = pipeline.build(engine=engine)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert set(report.failed) == {"grow large"}
    assert report.produced == ("grow small",)
    assert not (root / "out/large").exists()
    assert not list(root.rglob(".stepwell-*"))


def test_a_command_on_a_full_disk_says_that_the_disk_refused(tmp_path: Path) -> None:
    """A limit on the size of files is the disk that is full; nothing half written stays."""
    (tmp_path / "pipe.py").write_text(
        "from stepwell import Pipeline\np = Pipeline('p', root='root')\n"
        "@p.stage(input='in/{x}', output='out/{x}')\ndef s(text: str): return text\n"
    )
    (tmp_path / "large").write_bytes(b"x" * 5_000)
    command = f"ulimit -f 2; exec {sys.executable} -m stepwell pipeline put in/a large -p pipe:p"
    ended = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (4, ""), ended.stderr
    # The first file that is too large may be the store's, which has the audit log.
    assert re.match(r"error: (the system refused|.*stepwell\.db: the disk reported an error)", ended.stderr), (
        ended.stderr
    )
    assert not [path for path in (tmp_path / "root").rglob("*") if path.is_file() and path.parent.name == "in"]


@pytest.mark.parametrize("kind", ["directory", "pipe", "link", "file of several"])
def test_what_is_in_the_way_of_a_state_stops_only_that(root: Path, engine: Engine, kind: str) -> None:
    """Nobody recorded it, so it stays; the entity backs off instead of running with each scan."""
    ledger, clock = Ledger(), Clock()
    pipeline = Pipeline("p", root=root, clock=clock)
    several = kind == "file of several"

    @pipeline.stage(input="in/{x}.txt", output="out/{x}/{n}.txt" if several else "out/{x}.txt", version="1")
    def copy(entity, text: str):
        ledger.ran.append(str(entity))
        return {1: text, 2: text} if several else text

    for entity in "abc":
        write(root, f"in/{entity}.txt", entity)
    place = root / ("out/b/2.txt" if several else "out/b.txt")
    place.parent.mkdir(parents=True)
    if several:
        place.write_text("mine")
    elif kind == "directory":
        write(place, "note", "mine")
    elif kind == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to(root / "in/a.txt")
    before = place.lstat()
    report = pipeline.build(engine=engine)
    assert (set(report.produced), set(report.failed)) == ({"copy a", "copy c"}, {"copy b"})
    assert "taken by something that nobody recorded" in report.failed["copy b"]
    assert (place.lstat().st_ino, place.lstat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    ledger.take()
    assert statuses(pipeline)["copy b"] == "failed"
    assert pipeline.build(engine=engine).produced == ()
    clock.now += 61
    assert set(pipeline.build(engine=engine).failed) == {"copy b"}
    assert ledger.take() == ["b"]
    report = pipeline.build("copy b", engine=engine, force=True)
    assert (report.produced, report.failed) == (("copy b",), {})
    assert set(statuses(pipeline).values()) == {"fresh"}
    (aside,) = (root / ".stepwell/aside").glob("*/out/b/2.txt" if several else "*/out/b.txt")
    assert aside.lstat().st_ino == before.st_ino


def test_a_file_that_somebody_puts_in_the_place_of_a_state_meanwhile_is_no_failure(root: Path, engine: Engine) -> None:
    pipeline = Pipeline("p", root=root)

    @pipeline.stage("copy", input="in/{x}.txt", output="out/{x}.txt", version="1")
    def copy(text: str) -> str:
        write(root, "out/a.txt", "mine")
        return text

    write(root, "in/a.txt", "a")
    report = pipeline.build(engine=engine)
    assert (report.produced, report.failed, report.left) == ((), {}, {"copy a": "unrecorded"})
    assert (root / "out/a.txt").read_text() == "mine"
