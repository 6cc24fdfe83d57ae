"""Files whose names are unusual: each is built, or is left out and named, and stops no other."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stepwell import Engine, Pipeline

NAMES = [
    "plain", "no\u00a0break", "ends\u00a0", "👩\u200d💻", "so\u00adft", "next\u0085line", "\u202eright-to-left",
    "a\ufeffb", "\ue000", "a…b",
]  # fmt: skip


def copying(root: Path, pattern: str = "{x}", **options: object) -> Pipeline:
    pipeline = Pipeline("p", root=root)

    @pipeline.stage("copy", input=f"in/{pattern}.txt", output=f"out/{pattern}.txt", **options)
    def copy(text: str) -> str:
        if text == "bad":
            raise ValueError("it is bad")
        return text

    return pipeline


@pytest.mark.parametrize("options", [{}, {"limit": 2}])
def test_a_name_that_cannot_be_printed_is_built_like_any_other(tmp_path: Path, options: dict[str, object]) -> None:
    pipeline = copying(tmp_path / "root", **options)
    for name in NAMES:
        pipeline.put(f"in/{name}.txt", b"text")
    pipeline.put("in/fa\u00a0ils.txt", b"bad")
    engine = f"sqlite:///{tmp_path}/engine.db"
    report = pipeline.build(engine=engine)
    assert set(report.produced) == {f"copy {name}" for name in NAMES}
    assert report.failed == {"copy fa\u00a0ils": "it is bad"}
    again = pipeline.build(engine=engine)
    assert (again.produced, set(again.left)) == ((), {"copy fa\u00a0ils"})  # it backs off
    assert pipeline.retry() == ["copy fa\u00a0ils"]


def test_hundreds_in_one_node_have_such_names_too(tmp_path: Path) -> None:
    pipeline = copying(tmp_path / "root")
    names = [f"{number:03}{NAMES[number % len(NAMES)]}" for number in range(250)]
    os.makedirs(tmp_path / "root/in")
    for name in names:
        (tmp_path / f"root/in/{name}.txt").write_text("text")
    report = pipeline.build(engine=f"sqlite:///{tmp_path}/engine.db")
    assert set(report.produced) == {f"copy {name}" for name in names}


def test_entities_longer_than_the_name_of_a_node_are_told_apart(tmp_path: Path) -> None:
    pipeline = copying(tmp_path / "root", "{a}/{b}/{c}/{d}")
    paths = ["/".join(letter * 180 for letter in f"abc{last}") for last in "de"]
    for path in paths:
        pipeline.put(f"in/{path}.txt", b"text")
    report = pipeline.build(engine=f"sqlite:///{tmp_path}/engine.db")
    assert set(report.produced) == {f"copy {path}" for path in paths}


@pytest.mark.skipif(os.name == "nt", reason="names are not bytes there")
def test_a_name_that_is_no_text_is_left_out_and_stops_nothing(tmp_path: Path) -> None:
    pipeline = copying(tmp_path / "root")
    pipeline.put("in/a.txt", b"text")
    (tmp_path / "root/in" / os.fsdecode(b"\xff.txt")).write_text("text")
    (tmp_path / "root" / os.fsdecode(b"\xfe")).mkdir()
    engine = f"sqlite:///{tmp_path}/engine.db"
    assert pipeline.build(engine=engine).produced == ("copy a",)
    assert pipeline.build(engine=engine).produced == ()


def test_a_value_with_braces_is_left_out_and_stops_nothing(tmp_path: Path) -> None:
    """They would make an address one of several files."""
    root = tmp_path / "root"
    pipeline = Pipeline("p", root=root)

    @pipeline.stage(input="in/{x}.txt", output="out/{x}.txt", version="1")
    def copy(text: str) -> str:
        return text

    @pipeline.stage(input="in/{y:.*}.md", output="more/{y}.md", version="1")
    def other(text: str) -> str:
        return text

    for name in ("a{b}.txt", "c.txt", "a{b.md", "d.md"):
        pipeline.store.files.put("in/x", b"")
        (root / "in" / name).write_text("text")
    with Engine(f"sqlite:///{tmp_path}/engine.db") as engine:
        report = pipeline.build(engine=engine)
    assert (set(report.produced), report.failed, report.left) == ({"copy c", "other d"}, {}, {})
