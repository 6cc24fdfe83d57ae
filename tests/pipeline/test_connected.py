"""Pipelines of one root that read each other's states: what is planned, and in which order they are built."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from stepwell import Engine, Pipeline
from stepwell.pipeline.building.watch import Watcher
from stepwell.pipeline.connected import drawing
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
