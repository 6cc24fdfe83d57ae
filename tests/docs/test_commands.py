"""What the pages tell to type exists: every command with its options, every target of make, every extra of pip.

Commands whose output is shown are run by the tests of their pages, or below.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer

from stepwell.cli.app import app

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("docs/*.md"), *ROOT.glob("*.md")])


class Line(NamedTuple):
    page: str
    number: int
    words: list[str]

    def __str__(self) -> str:
        return f"{self.page}:{self.number}"


def lines() -> Iterator[Line]:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for block in re.finditer(r"^ *```(console|sh|bash|text)\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE):
            first = text[: block.start(2)].count("\n") + 1
            whole = re.sub(r"\\\n", "  ", block[2])
            for number, line in enumerate(whole.splitlines(), first):
                if block[1] == "sh" or line.lstrip().startswith("$ "):
                    yield from (Line(page.name, number, words) for words in commands(line.lstrip().removeprefix("$ ")))


def commands(line: str) -> Iterator[list[str]]:
    """The commands of a line, without what the shell does with them."""
    reading = shlex.shlex(line, posix=True, punctuation_chars=True)
    reading.whitespace_split, reading.commenters = True, "#"
    words: list[str] = []
    for word in [*reading, ";"]:
        if word in ("|", "&", "&&", ";", ">", "<"):
            if word == ">" and words[-1:] == ["2"]:
                words.pop()
            if words:
                yield words
            words = ["redirected"] if word in "<>" else []
        elif words or not re.match(r"\w+=", word):
            words.append(word)


COMMAND: Any = typer.main.get_command(app)
OURS = [line for line in lines() if line.words[0] == "stepwell"]


def test_there_are_many() -> None:
    assert len(OURS) > 90


@pytest.mark.parametrize("line", OURS, ids=str)
def test_a_command_of_the_pages_exists_with_its_options(line: Line) -> None:
    """Read as the command line reads it, up to the point where it would be done."""
    command = COMMAND
    context = command.make_context("stepwell", [], resilient_parsing=True)
    words = [word for word in line.words[1:] if word != "<Tab>"]
    while hasattr(command, "resolve_command") and words and not words[0].startswith("-"):
        name, command, words = command.resolve_command(context, words)
        context = command.context_class(command, parent=context, info_name=name)
    _, left, _ = command.make_parser(context).parse_args(list(words))  # an option that is not there raises
    assert not left, f"{line}: {left} is too much"


def test_targets_of_make_and_extras_of_pip_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    extras = set(
        tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    )
    for line in lines():
        first, *words = line.words
        if first == "make":
            assert {word for word in words if "=" not in word} <= targets, f"{line}: {words}"
        elif first == "pip":
            named = re.findall(r"stepwell\[([\w,]+)\]", " ".join(words))
            assert {each for names in named for each in names.split(",")} <= extras, f"{line}: {words}"
