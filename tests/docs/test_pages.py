"""What the pages show is what happens: their programs are run, and their links lead somewhere."""

from __future__ import annotations

import ast
import importlib
import json
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import stepwell.errors
from stepwell import Engine
from stepwell.core.graph import from_frozen
from tests.docs.preludes import COMMON, EPILOGUES, FILES, PRELUDES, STATES
from tests.postgres_server import PostgresServer
from tests.server.running import running
from tests.servers.redis_server import RedisServer

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("docs/*.md"), *ROOT.glob("*.md")])
RUN_WHOLE = (
    "asyncio.md",
    "branching.md",
    "coming-from.md",
    "fastapi.md",
    "index.md",
    "policies.md",
    "testing.md",
    "README.md",
)
"""Pages whose Python blocks are programs; those of one page are run one after the other, in one namespace."""
RUN_ELSEWHERE = {
    "child-runs.md": ("tests/docs/test_child_runs_page.py", 1),
    "checkpoints.md": ("tests/history/test_pages.py", 2),
    "class-form.md": ("tests/define/test_class_form_page.py", 34),
    "documents.md": ("tests/docs/test_documents_page.py", 1),
    "examples.md": ("tests/examples/test_examples_page.py", 9),
    "fork.md": ("tests/engine/test_fork_page.py", 1),
    "handlers.md": ("tests/handlers/test_handlers_page.py", 1),
    "pipelines.md": ("tests/pipeline/test_page.py", 1),
    "state.md": ("tests/engine/test_state_page.py", 3),
    "types.md": ("tests/base/types/test_types_page.py", 3),
}
"""Which tests run the Python blocks of other pages, and how many those are."""
DATA = {
    "child-runs.md": ({"json": 1}, "tests/engine/test_child_runs.py"),
    "branching.md": ({"yaml": 1}, "tests/define/document/test_conditions.py"),
    "documents.md": ({"yaml": 2}, "tests/docs/test_documents_page.py"),
    "dynamic.md": ({"json": 1}, "tests/docs/test_pages.py"),
    "handlers.md": ({"yaml": 8, "toml": 4}, "tests/handlers/test_handlers_page.py"),
    "pipelines.md": ({"json": 1}, "tests/pipeline/test_page.py"),
    "replay.md": ({"toml": 1}, "tests/docs/test_console.py"),
    "ui.md": ({"toml": 1}, "tests/server/test_about.py"),
    "triggers.md": ({"yaml": 2, "json": 1}, "tests/triggers/test_page.py"),
}
"""Blocks of documents and settings on pages, and which tests read them."""
SERVERS = {
    "postgresql://localhost/shop": "postgres",
    "redis://localhost:6379/0?namespace=shop": "redis",
    "redis://localhost:6379/1": "redis",
    "https://stepwell.example.com": "server",
}
"""Addresses on pages, which stand for servers of the tests."""


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


@pytest.fixture
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of its own, whose modules are forgotten in the end."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules.copy() if name.partition(".")[0] in ("shop", "upload")]:
        del sys.modules[name]  # of another folder
    yield tmp_path
    for name, module in sys.modules.copy().items():
        if str(getattr(module, "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


class Page:
    """The blocks of a page, run one after the other in one module."""

    def __init__(self, name: str, request: pytest.FixtureRequest, folder: Path) -> None:
        self.name, self._request, self._folder = name, request, folder
        self._path = ROOT / name if name == "README.md" else ROOT / "docs" / name
        self.text = self._path.read_text(encoding="utf-8")
        self._module = ModuleType(f"page_{name.removesuffix('.md').replace('-', '_')}")
        self._servers: dict[str, str] = {}

    def run(self) -> None:
        sys.modules[self._module.__name__] = self._module  # jobs are found by their address
        try:
            self._run()
        finally:
            del sys.modules[self._module.__name__]

    def _run(self) -> None:
        for name, code in FILES.get(self.name, {}).items():
            self._write(name, code)
        found = PRELUDES.get(self.name)
        preludes = found if isinstance(found, dict) else {0: found or ""}
        if found is not None:
            self._execute(COMMON)
        for number, block in enumerate(python_blocks(self.text)):
            self._execute(preludes.get(number, ""))
            named = re.match(r"# ([\w/]+\.py)\n", block[1])
            if named and self.name in FILES:
                self._write(named[1], block[1])
                self._execute(f"import runpy; runpy.run_path({named[1]!r}, run_name='__main__')")
            elif (self.name, number) == ("control.md", 1):
                for line in block[1].splitlines():
                    verb = re.search(r"\.(\w+)\(", line)
                    assert verb is not None
                    self._execute(f"prepare({STATES[verb[1]]!r})\n{line}")
            elif block[1].startswith(">>>"):
                self._type_at_a_prompt(block[1])
            else:
                self._execute(block[1], "\n" * self.text[: block.start(1)].count("\n"))
        self._execute(EPILOGUES.get(self.name, ""))

    def _execute(self, code: str, before: str = "") -> None:
        exec(compile(before + self._with_servers(code), str(self._path), "exec"), self._module.__dict__)

    def _type_at_a_prompt(self, block: str) -> None:
        for part in block.split(">>> ")[1:]:
            code, _, shown = part.partition("\n")
            if re.match(r"\w+ = ", code):
                self._execute(code)
            else:
                found = eval(code, self._module.__dict__)
                assert not shown or repr(found) == shown.rstrip(), code

    def _write(self, name: str, code: str) -> None:
        file = self._folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(code, encoding="utf-8")

    def _with_servers(self, code: str) -> str:
        for address, kind in SERVERS.items():
            if address in code:
                if address not in self._servers:
                    self._servers[address] = self._request.getfixturevalue(f"a_{kind}_url")
                code = code.replace(address, self._servers[address])
        return code.replace('token="sw_..."', "token=None").replace(
            "transport=RecordingTransport())", "transport=RecordingTransport(answers))"
        )


@pytest.fixture
def a_postgres_url(postgres: PostgresServer) -> str:
    return postgres.new_url()


@pytest.fixture
def a_redis_url(redis_server: RedisServer) -> str:
    return f"{redis_server.url}?namespace=page"


@pytest.fixture
def a_server_url(at_home: Path) -> Iterator[str]:
    shop = importlib.import_module("shop")
    with running(f"sqlite:///{at_home}/server.db", worker={"workflows": [shop.OrderWorkflow]}) as serving:
        yield serving.url


def python_blocks(text: str) -> list[re.Match[str]]:
    return list(re.finditer(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))


@pytest.mark.usefixtures("engines")
@pytest.mark.parametrize("page", [*RUN_WHOLE, *PRELUDES])
def test_the_programs_of_a_page_run(
    page: str, at_home: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUPPLIER_TOKEN", "")
    read = Page(page, request, at_home)
    assert python_blocks(read.text)
    read.run()


def test_every_block_of_python_is_run_by_somebody() -> None:
    """A new page says below which name its programs are run; a new block of a page that others run is counted there."""
    told = {*RUN_WHOLE, *PRELUDES, *RUN_ELSEWHERE}
    for page in PAGES:
        count = len(re.findall(r"^ *```(?:python|py)\b", page.read_text(encoding="utf-8"), re.MULTILINE))
        if count:
            assert page.name in told, f"no test runs the Python of {name_of(page)}"
            test, known = RUN_ELSEWHERE.get(page.name, ("", count))
            assert count == known, f"{name_of(page)} has {count} blocks of Python: does {test} run them all?"
            assert not test or page.name.removesuffix(".md") in (ROOT / test).read_text(encoding="utf-8")


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


def test_the_json_of_the_page_on_dynamic_graphs_is_a_graph() -> None:
    text = (ROOT / "docs" / "dynamic.md").read_text(encoding="utf-8")
    (form,) = re.findall(r"^```json\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert [spec.job for spec in from_frozen(form)] == ["shop.jobs:apply"]


def test_every_block_of_data_is_read_by_somebody() -> None:
    for page in PAGES:
        kinds = re.findall(r"^ *```(yaml|json|toml)\n", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert {kind: kinds.count(kind) for kind in kinds} == DATA.get(page.name, ({}, ""))[0], name_of(page)


def test_the_reference_names_what_there_is() -> None:
    """What it does not name, and is public, `make docs` adds at its end."""
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^::: stepwell\.(\w+)$", text, re.MULTILINE))
    assert named <= {*stepwell.__all__, "errors"}
    assert len(named) > 25


def test_the_reference_has_what_autocomplete_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it, and nothing internal; `make docs` puts it there."""
    monkeypatch.syspath_prepend(ROOT / "scripts")
    hooks = importlib.import_module("docs_hooks")
    page = SimpleNamespace(file=SimpleNamespace(src_uri="reference.md"))
    text = hooks.on_page_markdown((ROOT / "docs" / "reference.md").read_text(encoding="utf-8"), page)
    with Engine("memory://") as engine:
        (members,) = re.findall(r"^::: stepwell\.Engine\n    options:\n      members: (.*)$", text, re.MULTILINE)
        assert json.loads(members) == [name for name in dir(engine) if not name.startswith("_")]
    for name in ("Run", "AsyncRun", "Client", "Context", "NodeView"):
        assert f"::: stepwell.{name}\n    options:\n      members: [" in text


def test_every_page_of_the_site_is_there() -> None:
    listed = set(re.findall(r"([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE))
    assert listed == {page.relative_to(ROOT / "docs").as_posix() for page in ROOT.glob("docs/**/*.md")}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_of_python_can_be_read(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for block in re.finditer(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        if not block[1].lstrip().startswith(">>>"):
            try:
                compile(textwrap.dedent(block[1]), name_of(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            except SyntaxError as error:
                pytest.fail(f"{name_of(page)}:{text[: block.start(1)].count(chr(10)) + (error.lineno or 0)}: {error}")
