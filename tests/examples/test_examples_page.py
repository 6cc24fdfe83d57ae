"""docs/examples.md shows the code of the examples and what they really print: every block on the page is tried."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.examples.conftest import ROOT, Scheduler, until_in_time
from tests.forking.template import Template

PAGE = ROOT / "docs" / "examples.md"
TEXT = PAGE.read_text(encoding="utf-8")

SHOWN = {
    "orders.py": {"OrderWorkflow"},
    "mutations.py": {"mutations", "score", "aggregate", "main"},
    "deploy/version_1.py": {"Onboarding"},
    "deploy/version_2.py": {"Onboarding", "main"},
    "deploy/__main__.py": {"main"},
    "repair.py": {"Payroll", "pay_by", "repair", "main"},
    "report.py": {"nightly", "fetch", "estimate"},
}
"""What of each example must be on the page, whole."""


class Block(NamedTuple):
    line: int
    kind: str
    text: str


def blocks(kind: str) -> list[Block]:
    found = re.finditer(r"^```(\w+)\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    every = [Block(TEXT[: match.start()].count("\n") + 1, match[1], match[2]) for match in found]
    return [block for block in every if block.kind == kind]


def at_line(block: Block) -> str:
    return f"line {block.line}"


def source_of(block: Block) -> tuple[Path, str]:
    """The file that the first line of a block names, and the code below it."""
    first, _, code = block.text.partition("\n")
    assert first.startswith("# examples/"), f"line {block.line}: the first line names no example"
    return ROOT / first.removeprefix("# "), code


@pytest.mark.parametrize("block", blocks("python"), ids=at_line)
def test_code_on_the_page_is_the_code_of_the_example(block: Block) -> None:
    path, code = source_of(block)
    source = path.read_text(encoding="utf-8")
    for part in re.split(r"\n\n\n+", code.strip("\n")):
        assert f"\n{part}\n" in source


@pytest.mark.parametrize("name", SHOWN)
def test_the_core_of_every_example_is_on_the_page(name: str) -> None:
    path = ROOT / "examples" / name
    source = path.read_text(encoding="utf-8")
    on_page = "\n".join(code for of, code in map(source_of, blocks("python")) if of == path)
    wanted = {
        node.name: source.splitlines()[node.lineno - 1 : node.end_lineno]
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert SHOWN[name] <= set(wanted)
    assert {each for each in SHOWN[name] if "\n".join(wanted[each]) not in on_page} == set()


@pytest.mark.parametrize("block", blocks("console"), ids=at_line)
def test_commands_on_the_page_print_what_is_below_them(block: Block, tmp_path: Path, utf8_template: Template) -> None:
    until_in_time(tmp_path, utf8_template, lambda scheduler: perform(block, scheduler))


def perform(block: Block, scheduler: Scheduler) -> None:
    """Type the commands of a block and compare what they print. `kill -9 %1  # while NODE of RUN runs` does so."""
    running = None
    for command, expected in commands(block):
        killing = re.match(r"kill -9 %1 +# while (\w+) of ([\w-]+) runs", command)
        if killing:
            assert running is not None
            scheduler.kill_while(running, ".stepwell/stepwell.db", run_id=killing[2], node=killing[1])
        elif command.endswith("&"):
            running = scheduler.start(f"exec {command.removesuffix('&')}")
        else:
            ended = scheduler(command, code=None)
            assert plain(ended.out + ended.err) == plain(expected), ended


def commands(block: Block) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def plain(text: str) -> list[str]:
    """The lines without times, ids and widths, sorted: which of two processes, or streams, is first is no promise."""
    text = re.sub(r"\d\d:\d\d:\d\d", "<time>", text)
    text = re.sub(r"sqlite:////\S*/stepwell-\w+/", "sqlite:///<folder>/", text)
    text = re.sub(r"\d+(\.\d+)? s\b", "<seconds>", text)
    return sorted(re.sub(r"\s+", " ", line).strip() for line in text.splitlines() if line.strip())


def test_the_page_is_read_whole() -> None:
    """A block that no test reads would be free to be wrong."""
    assert len(blocks("python")) >= len(SHOWN)
    assert len(blocks("console")) >= 5
    assert TEXT.count("```") == 2 * (len(blocks("python")) + len(blocks("console")) + len(blocks("text")))
    for name in ("orders", "mutations", "deploy", "repair", "report"):
        assert f"$ python -m examples.{name}" in TEXT
