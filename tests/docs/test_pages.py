"""What the pages show is what happens: their programs are run, and their links lead somewhere."""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import stepwell.errors
from stepwell import Engine
from tests.docs.preludes import COMMON, PRELUDES

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("docs/*.md"), *ROOT.glob("*.md")])
RUN_WHOLE = ("asyncio.md", "coming-from.md", "fastapi.md", "index.md", "policies.md", "testing.md")
"""Pages whose Python blocks are programs; those of one page are run one after the other, in one namespace."""


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Engines that a page leaves open are closed."""
    opened: list[Engine] = []
    make = Engine.__init__

    def remember(self: Engine, *args: Any, **options: Any) -> None:
        make(self, *args, **options)
        opened.append(self)

    monkeypatch.setattr(Engine, "__init__", remember)
    yield
    for engine in opened:
        engine.close(1)


@pytest.mark.usefixtures("engines")
@pytest.mark.parametrize("page", [*RUN_WHOLE, *PRELUDES])
def test_the_programs_of_a_page_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))
    assert blocks
    monkeypatch.chdir(tmp_path)
    module = ModuleType(f"page_{page.removesuffix('.md').replace('-', '_')}")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # jobs are found by their address
    if page in PRELUDES:
        monkeypatch.setenv("SUPPLIER_TOKEN", "")
        exec(compile(COMMON + PRELUDES[page], "prelude", "exec"), module.__dict__)
    for block in blocks:
        if block[1].startswith(">>>"):  # at a prompt
            continue
        line = text[: block.start(1)].count("\n")
        exec(compile("\n" * line + block[1], str(ROOT / "docs" / page), "exec"), module.__dict__)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_somewhere(page: Path) -> None:
    """Within the project; what is elsewhere cannot be asked from here."""
    dead = []
    for target in _links(page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and anchor not in _anchors(file)):
            dead.append(target)
    assert dead == []


def _links(text: str) -> list[str]:
    prose = re.sub(r"^```.*?^```$|`[^`\n]*`", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"\]\(([^)\s]+)\)", prose)


def _anchors(page: Path) -> set[str]:
    """The headings of a page as its links name them."""
    prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_reference_names_what_there_is() -> None:
    """What it does not name, and is public, `make docs` adds at its end."""
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^::: stepwell\.(\w+)$", text, re.MULTILINE))
    assert named <= {*stepwell.__all__, "errors"}
    assert len(named) > 25


def test_every_page_of_the_site_is_there() -> None:
    listed = set(re.findall(r"([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE))
    assert listed <= {page.name for page in ROOT.glob("docs/*.md")}
    assert len(listed) > 25


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_of_python_can_be_read(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for block in re.finditer(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        if not block[1].lstrip().startswith(">>>"):
            try:
                compile(textwrap.dedent(block[1]), name_of(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            except SyntaxError as error:
                pytest.fail(f"{name_of(page)}:{text[: block.start(1)].count(chr(10)) + (error.lineno or 0)}: {error}")
