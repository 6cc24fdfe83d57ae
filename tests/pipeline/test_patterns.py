"""What patterns match, what they refuse, and which paths are safe."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepwell import Engine, Pipeline
from stepwell.errors import DefinitionError, UnsafePath
from stepwell.pipeline.building.build import Scanner
from stepwell.pipeline.patterns.paths import checked_path, name_problem
from stepwell.pipeline.patterns.pattern import Pattern
from tests import processor_time
from tests.pipeline.blog import write


@pytest.mark.parametrize(
    ("pattern", "path", "values"),
    [
        ("daily/{date}/*.txt", "daily/2026-01-15/a.txt", {"date": "2026-01-15"}),
        ("final/{date}-digest.md", "final/2026-01-15-digest.md", {"date": "2026-01-15"}),
        ("{a}/{b}.json", "x/y.json", {"a": "x", "b": "y"}),
        ("{a}/{a}.json", "x/x.json", {"a": "x"}),
        ("{a}/{a}.json", "x/y.json", None),
        ("{date:\\d{4}-\\d\\d}.txt", "2026-01.txt", {"date": "2026-01"}),
        ("{date:\\d{4}-\\d\\d}.txt", "2026-1.txt", None),
        ("daily/{date}/", "daily/x/", {"date": "x"}),
        ("daily/{date}/", "daily/x", None),
        ("{a}.txt", "a/b.txt", None),
        ("{a}.txt", ".hidden.txt", None),
        ("x/[ab]?.txt", "x/b1.txt", {}),
        ("x/[ab]?.txt", "x/c1.txt", None),
        ("{a}-{b}.txt", "x-y.txt", {"a": "x", "b": "y"}),
        ("{a}-{b}.txt", "x-y-z.txt", None),
        ("*", "", None),
        ("{a}-{b}-{c}.txt", "x-y-z.txt", {"a": "x", "b": "y", "c": "z"}),
        ("{a}-{b}-{c}.txt", "w-x-y-z.txt", None),
        ("{a}-{a}", "x-y-x-y", {"a": "x-y"}),
        ("{n:\\d+}-{n}.txt", "7-7.txt", {"n": "7"}),
        ("{n:\\d+}-{n}.txt", "7-8.txt", None),
        ("{n:(?i)ab}-{n}.txt", "aB-aB.txt", {"n": "aB"}),
    ],
)
def test_what_a_pattern_matches(pattern: str, path: str, values: dict[str, str] | None) -> None:
    assert Pattern(pattern).match(path) == values


def test_a_split_that_is_ambiguous_is_refused_and_said() -> None:
    pattern = Pattern("{a}-{b}.txt")
    assert pattern.is_ambiguous("x-y-z.txt")
    assert not pattern.is_ambiguous("x-y.txt")
    for unclear in ("{a}{b}.txt", "{a:x}{b}.txt", "{a}{b:x}.txt"):
        with pytest.raises(DefinitionError, match="nothing tells where one variable ends"):
            Pattern(unclear)
    assert Pattern("{a:x+}{b:y+}").match("xxy") == {"a": "xx", "b": "y"}


@pytest.mark.parametrize(
    "bad",
    [
        *(
            "",
            "/abs",
            "../x",
            "a/../b",
            "a//b",
            "{a",
            "a}",
            "{1a}",
            "{a:[}",
            "{a:(x)}",
            "a**/x",
            "**/a/**",
            "a/**/",
            "a/.",
        ),
        *("[z-a]", "a[!]b", "{a:(?=x)}", "{a:\\p{L}{99}}"),
    ],
)
def test_a_pattern_that_makes_no_sense_is_refused(bad: str) -> None:
    with pytest.raises(DefinitionError):
        Pattern(bad)


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("*a*a*a*a*a*a*a*a*b", "a" * 250),
        ("{a}-{b}-{c}-{d}-{e}-{f}-{g}-{h}!", "-" * 250),
        ("{a:(?:x+x+)+}y", "x" * 250),
        ("{a}-{a}-{a}-{a}-*-*", "-" * 250),
        ("{a:(?:a|a)*}*{a}*{a}*b", "a" * 250),
    ],
)
def test_a_name_is_matched_soon_whatever_the_pattern(pattern: str, name: str) -> None:
    with processor_time.at_most(processor_time.SECOND / 4):
        assert Pattern(pattern).match(name) is None


@pytest.mark.parametrize(
    ("one", "other", "overlap"),
    [
        ("daily/{date}/*.txt", "daily/{d}/summary.txt", True),
        ("daily/{date}/*.txt", "daily/{d}/summary.md", False),
        ("{a}-x", "{b}-y", False),
        ("{a}-x*", "*y-{b}", True),
        ("daily/{d}/", "daily/{d}/x/y.txt", True),
        ("a/{x}", "b/{x}", False),
        ("a/{x:\\d+}", "a/b", False),
    ],
)
def test_which_patterns_could_match_one_path(one: str, other: str, overlap: bool) -> None:
    assert Pattern(one).overlaps(Pattern(other)) is overlap
    assert Pattern(other).overlaps(Pattern(one)) is overlap


BAD_NAMES = [
    "..",
    ".",
    "",
    ".hidden",
    "a/b",
    "a\\b",
    "a\0b",
    "a:b",
    "a\nb",
    "x.",
    " x",
    "x ",
    "e\u0301",
    "é" * 101,
    "\ud800",
]


@pytest.mark.parametrize("bad", BAD_NAMES)
def test_names_that_no_variable_can_stand_for(bad: str) -> None:
    assert name_problem(bad) is not None
    for path in (f"x/{bad}", f"{bad}/x", f"x/{bad}/y") if "/" not in bad and bad else (f"x/{bad}/../y", f"x//{bad}y"):
        with pytest.raises(UnsafePath):
            checked_path(path)


def test_a_path_that_is_not_relative_is_refused_as_such() -> None:
    with pytest.raises(UnsafePath, match="it begins with /, but paths are relative to the root"):
        checked_path("/etc/passwd")


@settings(deadline=None)
@given(st.text(min_size=1, max_size=30))
def test_no_value_escapes_from_the_root(value: str) -> None:
    if name_problem(value) is None:
        joined = os.path.normpath(f"/root/x/{value}")
        assert os.path.dirname(joined) == "/root/x"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"input": "a/{x}", "output": "b/all"}, "several entities would write one state"),
        ({"input": "a/{x}", "output": "b/*.txt"}, "a glob names no file"),
        ({"input": "a/{x}", "output": "b/{x}", "collect": "x"}, "is collected"),
        ({"input": "a/{x}", "output": "b", "collect": "y"}, "no input has this variable"),
        ({"output": "b"}, "expected input="),
        ({"input": "a/{x}", "output": {}}, "output=: expected at least one pattern"),
        ({"input": "a/{x}", "output": "b/{x}", "min_size": -1}, "min_size=-1"),
        ({"input": "a/{x}", "output": "b/{x}", "quiet": "soon"}, "quiet='soon'"),
        ({"input": "a/{x}", "output": "b/{x}", "config": {"a": object()}}, "kept as JSON"),
        ({"input": {"entity": "a/{x}"}, "output": "b/{x}"}, "a parameter can have"),
        ({"input": "a/{x}", "output": "a/{x}"}, "need each other's outputs"),
        ({"input": "../{x}", "output": "b/{x}"}, "begins with a dot"),
    ],
)
def test_a_stage_that_makes_no_sense_is_refused_where_it_is_written(
    root: Path, options: dict[str, object], problem: str
) -> None:
    pipeline = Pipeline("p", root=root)
    with pytest.raises(DefinitionError, match=problem.replace("(", "\\(")) as raised:
        pipeline.stage(**options)(_body)  # type: ignore[arg-type]
    assert "need each other" in problem or "test_patterns.py:" in str(raised.value)


def _body(it: bytes) -> bytes:
    return it


def test_two_stages_cannot_write_one_state(root: Path) -> None:
    pipeline = Pipeline("p", root=root)
    pipeline.stage("one", input="a/{x}", output="out/{x}.md")(_body)
    with pytest.raises(DefinitionError, match="one and two could write one state"):
        pipeline.stage("two", input="b/{y}", output="out/{y}.md")(_body)


def test_a_parameter_that_is_no_input_is_refused(root: Path) -> None:
    pipeline = Pipeline("p", root=root)
    with pytest.raises(DefinitionError, match="'prompt' of body is no input; there are page, and config, ctx,"):

        @pipeline.stage(input={"page": "a/{x}"}, output="b/{x}")
        def body(page: str, prompt: str) -> str:
            return page

    with pytest.raises(DefinitionError, match="there are the input, and config"):

        @pipeline.stage(input="a/{x}", output="b/{x}")
        def other(page: str, prompt: str) -> str:
            return page


@pytest.mark.parametrize(
    ("text", "path", "values"),
    [
        ("logs/**/*.txt", "logs/a.txt", {}),
        ("logs/**/*.txt", "logs/a/b/c.txt", {}),
        ("logs/**/*.txt", "logs/a/b/c.md", None),
        ("logs/**/*.txt", "a.txt", None),
        ("logs/**", "logs/a/b", {}),
        ("logs/**", "logs", None),
        ("**/{name}.md", "x.md", {"name": "x"}),
        ("**/{name}.md", "a/b/x.md", {"name": "x"}),
        ("{day}/**/part/{name}.md", "d/part/x.md", {"day": "d", "name": "x"}),
        ("{day}/**/part/{name}.md", "d/a/b/part/x.md", {"day": "d", "name": "x"}),
        ("{day}/**/part/{name}.md", "d/x.md", None),
        ("{day}/**/{day}.md", "d/a/d.md", {"day": "d"}),
        ("{day}/**/{day}.md", "d/a/e.md", None),
    ],
)
def test_two_stars_are_any_number_of_directories(text: str, path: str, values: dict[str, str] | None) -> None:
    pattern = Pattern(text)
    assert pattern.match(path) == values
    assert pattern.covers(path) == (values is not None)
    folders = path.split("/")[:-1]
    if values is not None:
        assert all(pattern.leads_to(folders[:depth]) for depth in range(len(folders) + 1))
        assert pattern.match_folder(folders) is not None


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("a/**/*.md", "a/{x}.md", True),
        ("a/**/*.md", "a/b/c/{x}.md", True),
        ("a/**/*.md", "a/b/c/{x}.txt", False),
        ("a/**/*.md", "b/{x}.md", False),
        ("a/**/*.md", "a/{x}/", True),
        ("a/b/**/*.md", "a/", True),
        ("a/b/**/*.md", "b/", False),
        ("**/*.md", "{x}/y.md", True),
    ],
)
def test_what_two_stars_share_with_other_patterns(one: str, other: str, expected: bool) -> None:
    assert Pattern(one).overlaps(Pattern(other)) == Pattern(other).overlaps(Pattern(one)) == expected


def test_a_deep_glob_reads_what_is_anywhere_below_and_never_its_own_outputs(root: Path, engine: Engine) -> None:
    pipeline = Pipeline("deep", root=root)

    @pipeline.stage(input="notes/{topic}/**/*.md", output="notes/{topic}/all.md", version="1")
    def join(files: list[str]) -> str:
        return "+".join(files)

    @pipeline.stage(input="notes/**/*.md", output="site/index/", version="1")
    def site(files: list[str], out: Path) -> None:
        (out / "index.md").write_text(" ".join(sorted(files)))

    write(root, "notes/a/one.md", "1")
    write(root, "notes/a/x/y/two.md", "2")
    write(root, "notes/a/x/.hidden/three.md", "3")
    assert set(pipeline.build(engine=engine).produced) == {"join a", "site"}
    assert (root / "notes/a/all.md").read_text() == "1+2"
    assert (root / "site/index/index.md").read_text() == "1 1+2 2"
    assert pipeline.build(engine=engine).produced == ()
    with Scanner(pipeline, engine) as scanner:
        scanner.scan()
        write(root, "notes/a/z/z/four.md", "4")
        assert set(scanner.changed(["notes/a/z"]).produced) == {"join a", "site"}
    assert (root / "notes/a/all.md").read_text() == "1+2+4"
