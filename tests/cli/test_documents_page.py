"""docs/documents.md is run: documents are checked, commands executed, what they print compared."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from stepwell import Document, DocumentError
from stepwell.define.document.document import FIELDS
from stepwell.define.document.nodes import FIELDS as NODE_FIELDS
from tests.cli.conftest import Shop

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "documents.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(yaml|console|python)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_page_does_what_it_says(shop: Shop) -> None:
    (shop.folder / "stepwell").write_text(f'#!/bin/sh\nexec {sys.executable} -m stepwell "$@"\n')
    (shop.folder / "stepwell").chmod(0o755)
    ran = 0
    for kind, text in BLOCKS:
        if kind == "yaml":
            name = text.partition("\n")[0].removeprefix("# ")
            shop.write(name, text)
        elif kind == "python":
            subprocess.run([sys.executable, "-c", text], cwd=shop.folder, check=True, timeout=60)
        else:
            ran += _run_console(shop, text)
    assert ran > 10


def _run_console(shop: Shop, text: str) -> int:
    """Each command, and the lines below it; `…` stands for anything, `exit code N` for how it ended."""
    parts = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
    for part in parts:
        command, _, expected = part.partition("\n")
        code = re.search(r"^exit code (\d+)\n", expected, re.MULTILINE)
        expected = re.sub(r"^exit code \d+\n", "", expected, flags=re.MULTILINE)
        environment = shop._environment({})
        environment["PATH"] = f"{shop.folder}:{environment['PATH']}"
        done = subprocess.run(
            command,
            shell=True,
            cwd=shop.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == (int(code[1]) if code else 0), (command, done.stderr)
        pattern = ".*".join(map(re.escape, expected.split("…")))
        assert re.fullmatch(pattern, done.stdout), f"{command}\n{done.stdout}\ninstead of\n{expected}"
    return len(parts)


def test_the_tables_name_every_field() -> None:
    for name in (*FIELDS, *NODE_FIELDS):
        assert f"`{name}`" in PAGE


@pytest.mark.parametrize("file", sorted((ROOT / "examples" / "documents").glob("*.*")), ids=lambda file: file.name)
def test_every_example_document_is_named_and_nothing_is_wrong_with_it(file: Path) -> None:
    if file.suffix in (".yaml", ".json"):
        assert f"({'../examples/documents/' + file.name})" in PAGE
        assert Document.load(file).graph


def test_the_wrong_document_is_wrong() -> None:
    (text,) = [text for kind, text in BLOCKS if kind == "yaml" and text.startswith("# typos.yaml")]
    with pytest.raises(DocumentError, match="3 problems"):
        Document.parse(text)
