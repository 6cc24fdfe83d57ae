"""docs/documents.md is run: documents are checked, commands executed, what they print compared."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from stepwell import Document
from stepwell.define.document.forms import DocumentForm, NodeForm
from stepwell.errors import DocumentError
from tests.docs.terminal import Terminal
from tests.tables import field_rows, rows_below

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "documents.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(yaml|console|python)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_page_does_what_it_says(terminal: Terminal) -> None:
    def type_into_a_shell(typed: str) -> None:
        subprocess.run(typed, shell=True, check=True)

    def write(typed: str) -> None:
        Path("outputs.json").write_text(shlex.split(typed)[1], encoding="utf-8")

    terminal.instead |= {"sed": type_into_a_shell, "echo": write}
    terminal.exact = True
    consoles = iter(terminal.open("documents.md"))
    for kind, text in BLOCKS:
        if kind == "yaml":
            Path(text.partition("\n")[0].removeprefix("# ")).write_text(text, encoding="utf-8")
        elif kind == "python":
            exec(compile(text, "docs/documents.md", "exec"), {"__name__": "page"})
        else:
            terminal.type(next(consoles))


def test_the_tables_are_those_of_the_forms() -> None:
    assert rows_below("## What a document says", PAGE) == field_rows(DocumentForm)
    assert field_rows(NodeForm) <= set(PAGE.splitlines())


@pytest.mark.parametrize("file", sorted((ROOT / "examples" / "documents").glob("*.*")), ids=lambda file: file.name)
def test_every_example_document_is_named_and_nothing_is_wrong_with_it(file: Path) -> None:
    if file.suffix in (".yaml", ".json"):
        assert f"({'../examples/documents/' + file.name})" in PAGE
        assert Document.load(file).graph


def test_the_wrong_document_is_wrong() -> None:
    (text,) = [text for kind, text in BLOCKS if kind == "yaml" and text.startswith("# typos.yaml")]
    with pytest.raises(DocumentError, match="3 problems"):
        Document.parse(text)
