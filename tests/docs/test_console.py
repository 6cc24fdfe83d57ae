"""What pages show of the command line is what is printed: their commands are typed, one after the other.

Every page is a story of its own: what its runs are is made first. See `terminal.py`.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepwell import Engine, Workflow, step
from tests.docs.terminal import PAGES, ROOT, Block, Terminal, blocks, blocks_of, forget, to_type
from tests.engine.waiting import eventually
from tests.pipeline.blog import write
from tests.simulation import prove

SHOP = """
from pathlib import Path
from stepwell import Workflow, step, task

class Import(Workflow, on_failure="pause"):
    @step
    def fetch(self): ...
    @step
    def convert(self):
        if not Path("mended").exists():
            raise ValueError("line 812: 'n/a' is not a price")
    @step
    def publish(self): ...
    @task(depends_on=fetch)
    def archive(self): ...

class Order(Workflow):
    express: bool
    @step
    def ship(self): ...
"""
MODULES = ("blog", "imports", "orders", "report", "shop", "upload")
TYPED_ELSEWHERE = {
    "cli.md": "tests/docs/test_cli_page.py",
    "deploy.md": "tests/docs/test_server_pages.py",
    "documents.md": "tests/docs/test_documents_page.py",
    "examples.md": "tests/examples/test_examples_page.py",
    "http.md": "tests/docs/test_server_pages.py",
    "postgres.md": "tests/docs/test_server_pages.py",
    "triggers.md": "tests/triggers/test_page.py",
    "ui.md": "tests/docs/test_server_pages.py",
    "README.md": "tests/docs/test_server_pages.py",
    "why.md": "tests/docs/test_why_page.py",
}
"""Which tests type the commands of other pages."""
KNOWN = {"examples.md": 9, "triggers.md": 2}
"""How many blocks there are on pages whose tests do not look by themselves whether they typed all of them."""


class Blocking(Workflow):
    begun = threading.Event()
    gate = threading.Event()

    @step
    def load(self) -> None:
        self.begun.set()
        self.gate.wait(60)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[None]:
    (tmp_path / "shop.py").write_text(SHOP, encoding="utf-8")
    forget(*MODULES)
    yield
    forget(*MODULES)


def page_text(page: str) -> str:
    return (ROOT / "docs" / page).read_text(encoding="utf-8")


def write_programs(page: str) -> None:
    """The Python of a page that begins with the name of a file."""
    named = r"^```python\n# ([\w/]+\.py)\n(.*?)^```$"
    for name, code in re.findall(named, page_text(page), re.DOTALL | re.MULTILINE):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(code, encoding="utf-8")


def test_a_block_of_commands_is_typed_or_says_that_it_is_an_illustration() -> None:
    """A new page says who types its commands; those of a page that another test types are counted."""
    here = Path(__file__).read_text(encoding="utf-8")
    for page in (path.name for path in PAGES if to_type(path.name)):
        test = TYPED_ELSEWHERE.get(page)
        typed = here if test is None else (ROOT / test).read_text(encoding="utf-8")
        opened = f'terminal.open("{page}")'
        if page in KNOWN:
            assert len(to_type(page)) == KNOWN[page], (
                f"docs/{page} has other blocks of commands: does {test} type them all?"
            )
        else:
            assert opened in typed, f"no test types the commands of {page}: {opened} in {test or __file__}"


def test_what_is_no_illustration_is_found() -> None:
    for path in PAGES:
        fences = re.findall(r"^ *(?:```|~~~).*$", path.read_text(encoding="utf-8"), re.MULTILINE)
        strange = [fence for fence in fences if not re.fullmatch(r" *```\w*", fence)]
        assert (len(fences) % 2, strange) == (0, []), f"{path.name}: blocks that are not read"
    assert len([block for path in PAGES for block in to_type(path.name)]) > 45
    marked = [block for path in PAGES for block in blocks(path.name) if block.is_illustration]
    assert [block.page for block in marked] == ["cli.md"]


def test_a_page_whose_commands_are_not_all_typed_is_refused(terminal: Terminal) -> None:
    first, *_ = terminal.open("why.md")
    with pytest.raises(AssertionError, match=rf"nobody has typed why\.md:{first.line}: stepwell why order-7 ship"):
        terminal.close()
    with pytest.raises(AssertionError, match="who types it"):
        terminal.type(Block("x.md", 1, "$ rm -rf work\n", False))
    with pytest.raises(AssertionError, match="does not print"):
        terminal.type(Block("x.md", 1, "$ stepwell version\nstepwell 0.0.0\n", False))
    terminal.open("types.md")


@pytest.mark.usefixtures("shop")
def test_control(terminal: Terminal, tmp_path: Path) -> None:
    story, refused, cascade, pausing, editing, bulk = terminal.open("control.md")
    other = {"import-7": "import-9"}
    terminal.type(story, replace=other, some=slice(0, 2))

    def edit(_: str) -> None:
        form = json.loads(Path("graph.json").read_text(encoding="utf-8"))
        form["nodes"]["publish"]["timeout"] = 60
        Path("graph.json").write_text(json.dumps(form), encoding="utf-8")

    terminal.instead["$EDITOR graph.json"] = edit
    terminal.type(editing, replace=other)
    terminal.type(story, {2: (tmp_path / "mended").touch})
    terminal.type(refused)
    terminal.type(cascade)
    terminal.type(bulk)
    with Engine() as engine:
        run = engine.start(Blocking(), run_id="import-8")
        eventually(Blocking.begun.is_set, "the body did not begin")
        terminal.type(pausing)
        Blocking.gate.set()
        run.cancel()


@pytest.mark.usefixtures("shop")
def test_fork(terminal: Terminal, tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", page_text("fork.md"), re.DOTALL)
    definition = code.partition("with Engine")[0]
    (tmp_path / "report.py").write_text(definition, encoding="utf-8")
    report = importlib.import_module("report")
    with Engine() as engine:
        engine.run(report.Report(rate=2.0), run_id="report-7")
    for block in terminal.open("fork.md"):
        terminal.type(block)


def test_tokens(terminal: Terminal) -> None:
    (block,) = terminal.open("security.md")
    shown = block.commands[0][1].strip()
    terminal.type(block, some=slice(0, 1), replace={shown: "sw_…"})
    token = re.match(r"sw_(\w+?)_\S{30,}\n", terminal.told)
    assert token
    terminal.type(block, some=slice(1, None), replace={shown.split("_")[1]: token[1]})


@pytest.mark.usefixtures("shop")
def test_healing(terminal: Terminal, tmp_path: Path) -> None:
    renamed, without_input = terminal.open("healing.md")
    new = """
class OrderWorkflow(Workflow):
    @step(retry=5)
    def bill(self):
        raise ConnectionError
"""
    (tmp_path / "shop.py").write_text(SHOP.replace("    express: bool\n", "") + new.replace("bill", "charge"))
    shop = importlib.import_module("shop")
    engine = Engine()
    charged = engine.start(shop.OrderWorkflow(), run_id="01a1df" + 26 * "0")
    eventually(lambda: charged.node("charge").status == "WAITING", show=charged.why)
    engine.close()
    with Engine(runner=None) as engine:
        engine.start(shop.Order(), run_id="order-7")
    (tmp_path / "shop.py").write_text(SHOP + new, encoding="utf-8")
    shop = importlib.reload(shop)
    with Engine(workflows=[shop.OrderWorkflow]) as engine:
        eventually(lambda: engine.get(charged.id).status == "PAUSED")
    terminal.type(renamed)
    terminal.type(without_input)


def test_testing(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    with Engine() as engine:
        Blocking.gate.set()
        engine.run(Blocking(), run_id="order-7")
    (block,) = terminal.open("testing.md")
    terminal.type(block)
    assert (tmp_path / "tests/order-7.cassette.json").exists()


@pytest.mark.usefixtures("shop")
def test_checkpoints(terminal: Terminal) -> None:
    write_programs("checkpoints.md")
    imports = importlib.import_module("imports")
    with Engine() as engine:
        engine.run(imports.Import(), run_id="import-7")
    (block,) = terminal.open("checkpoints.md")
    terminal.type(block)


@pytest.mark.usefixtures("shop")
def test_logs(terminal: Terminal, tmp_path: Path) -> None:
    program = """
import logging
from stepwell import Retry, Workflow, step

class Import(Workflow):
    @step(retry=Retry(3, base_delay=0.001))
    def load(self, ctx):
        logging.getLogger("imports").warning("row 17 has no price")
        print("retrying the last page")
        if ctx.attempt < 3:
            raise ConnectionError
"""
    (tmp_path / "imports.py").write_text(program, encoding="utf-8")
    with Engine() as engine:
        engine.run(importlib.import_module("imports").Import(), run_id="import-0115")
    (block,) = terminal.open("logs.md")
    terminal.type(block)


@pytest.mark.usefixtures("shop")
def test_replay(terminal: Terminal, tmp_path: Path) -> None:
    write_programs("replay.md")
    (settings,) = re.findall(r"^```toml\n(.*?)^```$", page_text("replay.md"), re.DOTALL | re.MULTILINE)
    first, changed, exported = terminal.open("replay.md")
    terminal.exact = True
    took = re.search(r"in [\d.]+ s", first.text)
    assert took
    terminal.type(first, replace={took[0]: "in … s"})
    terminal.type(exported)
    (tmp_path / "pyproject.toml").write_text(settings, encoding="utf-8")
    assert "1 passed" in run_pytest(0)
    orders = Path("orders.py").read_text(encoding="utf-8")
    Path("orders.py").write_text(orders.replace("round(", "int("), encoding="utf-8")
    forget("orders")
    terminal.exact = False
    terminal.type(changed)
    assert "recorded 2499, now 2498" in run_pytest(1)


def run_pytest(code: int) -> str:
    """The tests of the page, as a user runs them."""
    options = ("-q", "-p", "no:cacheprovider", "-p", "stepwell.testing.plugin", "test_orders.py")
    environment = {**os.environ, "PYTHONPATH": os.getcwd(), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ended.returncode == code, ended.stdout + ended.stderr
    return ended.stdout


@pytest.mark.usefixtures("shop")
def test_pipelines(terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = re.findall(r"```python\n(.*?)```", page_text("pipelines.md"), re.DOTALL)[0]
    (tmp_path / "blog.py").write_text(example, encoding="utf-8")
    for day in ("2026-01-15", "2026-01-16"):
        write(tmp_path / "output", f"daily/{day}/notes.txt", f"Notes of {day}")
    write(tmp_path / "output", "style.md", "Short.")

    def export(typed: str) -> None:
        monkeypatch.setenv(*typed.removeprefix("export ").split("="))

    def append(typed: str) -> None:
        _, text, _, file = shlex.split(typed)
        with Path(file).open("a", encoding="utf-8") as opened:
            opened.write(f"{text}\n")

    terminal.instead |= {"export": export, "echo": append}
    (block,) = terminal.open("pipelines.md")
    terminal.type(block)


def test_reliability(terminal: Terminal, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with Engine() as engine:
        Blocking.gate.set()
        run = engine.run(Blocking())

    def tell(typed: str) -> None:
        words = re.findall(r"'[^']*'|\S+", typed.removeprefix("python -m "))
        monkeypatch.setattr("sys.argv", [word.strip("'") for word in words])
        assert prove.main() == 0
        assert "all is well" in capsys.readouterr().out

    terminal.instead["python -m tests.simulation.prove"] = tell
    proving, again = terminal.open("reliability.md")
    terminal.type(proving, replace={"RUN": run.id})
    terminal.type(again)


@pytest.mark.usefixtures("shop")
def test_index(terminal: Terminal) -> None:
    """And the page of the project that it makes."""
    (block,) = terminal.open("index.md")
    terminal.type(block)
    assert "Thank you!" in terminal.told
    with Engine(runner=None) as engine:
        (run,) = engine.runs()
    forget("orders")  # the folder
    terminal.instead["pytest"] = lambda _: ""  # tests/cli/test_init.py does
    for block in blocks_of("orders/README.md", Path("README.md").read_text(encoding="utf-8")):
        terminal.type(block, replace={"RUN": run.id})


@pytest.mark.usefixtures("shop")
def test_dynamic(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "shop.py").unlink()
    write_programs("dynamic.md")
    (tmp_path / "shop/__init__.py").touch()
    jobs = (tmp_path / "shop/jobs.py").read_text(encoding="utf-8")
    (tmp_path / "shop/jobs.py").write_text(jobs.replace("len(applied)", "len(missing)"), encoding="utf-8")
    upload = importlib.import_module("upload")
    run_id = "01a1dee2ce6b2f768b3cdfd818ba5158"
    with Engine() as engine:
        assert engine.run(upload.upload(7, [4, 8]), run_id=run_id, check=False).status == "FAILED"

    def edit(_: str) -> None:
        form = json.loads(Path("run.json").read_text(encoding="utf-8"))
        (report,) = [node for node in form["nodes"].values() if node["name"] == "report"]
        report["job"] = "shop.repaired:report"
        Path("run.json").write_text(json.dumps(form), encoding="utf-8")
        (tmp_path / "shop/repaired.py").write_text(jobs, encoding="utf-8")

    terminal.instead["$EDITOR run.json"] = edit
    (block,) = terminal.open("dynamic.md")
    terminal.type(block)
    with Engine(runner=None) as engine:
        assert engine.get(run_id).output("notify") == f"7: 2 changes, run {run_id}"
