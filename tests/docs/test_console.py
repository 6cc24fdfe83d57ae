"""What pages show of the command line is what is printed: their commands are typed, one after the other."""

from __future__ import annotations

import importlib
import json
import re
import shlex
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stepwell import Engine, Workflow, step
from stepwell.cli.app import app
from tests.runner.waiting import eventually

ROOT = Path(__file__).parents[2]
SHOP = """
from pathlib import Path
from stepwell import Retry, Workflow, step, task

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

class Load(Workflow):
    order_id: int
    express: bool = False
    tags: list[str] = []
    @step(retry=Retry(3, base_delay=0.001))
    def load(self, ctx):
        print("retrying the last page")
        if ctx.attempt < 3:
            raise ConnectionError
"""


class Blocking(Workflow):
    begun = threading.Event()
    gate = threading.Event()

    @step
    def load(self) -> None:
        self.begun.set()
        self.gate.wait(60)


def blocks(page: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(r"^```console\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def without_times(text: str) -> str:
    """What differs each time: seconds, ratios, places at which a fork begins, and how wide it makes its column."""
    text = re.sub(r"\d+\.\d+ (s|m)\b", "T", re.sub(r"\d+\.\d\dx", "Rx", text))
    return re.sub(r"[ ─]+", " ", text)


@pytest.fixture
def type_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Callable[..., None]]:
    """Type the commands of a block, in this process; `before` is called before the command with that number."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("stepwell.cli.streams.keep_stdout", lambda: None)  # it changes the whole process
    (tmp_path / "shop.py").write_text(SHOP, encoding="utf-8")
    for name in ("shop", "report"):
        sys.modules.pop(name, None)  # of another folder

    def type_block(block: str, before: dict[int, Callable[[], object]] | None = None) -> None:
        for number, part in enumerate(re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]):
            typed, _, shown = part.partition("\n")
            (before or {}).get(number, lambda: None)()
            typed, _, file = re.sub(r" +#.*", "", typed).partition(" > ")
            words = shlex.split(typed)
            if words[0] != "stepwell":
                continue
            with pytest.raises(SystemExit) as ended:
                app(words[1:], prog_name="stepwell")
            printed = capsys.readouterr()
            if file:
                Path(file).write_text(printed.out, encoding="utf-8")
            if words[1] != "diff":  # whose exit code says whether there is a difference
                assert bool(ended.value.code) == ("error: " in shown), (typed, printed)
            told = without_times(printed.out + printed.err)
            for line in shown.splitlines():
                for piece in line.split("…"):
                    assert without_times(piece).strip() in told, f"{typed} does not print:\n{line}\nbut:\n{told}"

    yield type_block
    for name in ("shop", "report"):
        sys.modules.pop(name, None)


def test_control(type_all: Callable[..., None], tmp_path: Path) -> None:
    story, refused, cascade, pausing, editing = blocks("control.md")
    type_all(story.partition("$ stepwell retry")[0].replace("import-7", "import-9"))

    def edit() -> None:
        form = json.loads(Path("graph.json").read_text(encoding="utf-8"))
        form["nodes"]["publish"]["timeout"] = 60
        Path("graph.json").write_text(json.dumps(form), encoding="utf-8")

    type_all(editing.replace("import-7", "import-9"), {1: edit})
    type_all(story, {2: (tmp_path / "mended").touch})
    type_all(refused)
    type_all(cascade)
    with Engine("sqlite:///.stepwell/stepwell.db") as engine:
        run = engine.start(Blocking(), run_id="import-8")
        eventually(Blocking.begun.is_set, "the body did not begin")
        type_all(pausing)
        Blocking.gate.set()
        run.cancel()


def test_fork(type_all: Callable[..., None], tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "fork.md").read_text(encoding="utf-8"), re.DOTALL)
    definition = code.partition("with Engine")[0]
    (tmp_path / "report.py").write_text(definition, encoding="utf-8")
    report = importlib.import_module("report")
    with Engine() as engine:
        engine.run(report.Report(rate=2.0), run_id="report-7")
    first, second = blocks("fork.md")
    type_all(first)
    type_all(second)


def test_tokens(type_all: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = blocks("security.md")
    create, listed, revoke = re.split(r"(?=^\$ )", block, flags=re.MULTILINE)[1:]
    with pytest.raises(SystemExit):
        app(shlex.split(create.partition("\n")[0])[2:], prog_name="stepwell")
    token = capsys.readouterr().out.strip()
    assert re.fullmatch(create.partition("\n")[2].strip().partition("_")[0] + r"_(\w+)_\S+", token)
    type_all(listed)
    type_all(revoke.replace("2ea2a6d44a8e", token.split("_")[1]))


def test_an_input_that_a_run_lacks(type_all: Callable[..., None], tmp_path: Path) -> None:
    """docs/healing.md"""
    with_input = (tmp_path / "shop.py").read_text(encoding="utf-8")
    (tmp_path / "shop.py").write_text(with_input.replace("    express: bool\n", ""), encoding="utf-8")
    shop = importlib.import_module("shop")
    with Engine(runner=None) as engine:
        engine.start(shop.Order(), run_id="order-7")
    (tmp_path / "shop.py").write_text(with_input, encoding="utf-8")
    importlib.reload(shop)
    (block,) = blocks("healing.md")
    type_all(block)


def test_a_recorded_run_is_exported(type_all: Callable[..., None], tmp_path: Path) -> None:
    """docs/testing.md"""
    (tmp_path / "tests").mkdir()
    with Engine() as engine:
        Blocking.gate.set()
        engine.run(Blocking(), run_id="order-7")
    type_all(next(block for block in blocks("testing.md") if "export" in block))
    assert (tmp_path / "tests/order-7.cassette.json").exists()


def test_commands_that_show_nothing(type_all: Callable[..., None], tmp_path: Path) -> None:
    """docs/cli.md, docs/logs.md: what is typed there works, on a run that is there; what follows a pipe is not ours."""
    (tmp_path / "order.json").write_text(json.dumps({"express": True}), encoding="utf-8")
    cli = blocks("cli.md")
    runs = next(block for block in cli if "--input-file" in block)
    graphs = next(block for block in cli if "--svg order-7.svg" in block)
    scripts = next(block for block in cli if "--since 1d" in block)
    (logs,) = blocks("logs.md")
    for block in (runs, graphs, scripts, logs.replace("import-0115", "order-7")):
        typed = [line.partition(" | ")[0] for line in block.splitlines() if line.startswith("$ ")]
        type_all("\n".join(typed).replace("shop:Order", "shop:Load") + "\n")
    assert (tmp_path / "order-7.svg").read_text(encoding="utf-8").startswith("<svg")
    assert json.loads((tmp_path / "order-7.json").read_text(encoding="utf-8"))["nodes"]
