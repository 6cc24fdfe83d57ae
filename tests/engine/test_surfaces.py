"""What people see after a dot, at a prompt and in a notebook: what they need, and nothing that is not for them."""

from __future__ import annotations

import asyncio
import inspect
import io
import logging
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import stepwell
from stepwell import Builder, Context, Engine, Workflow, errors, step
from stepwell.client import Client
from stepwell.client.client import AsyncClient
from stepwell.core.graph import Graph
from stepwell.core.model import ListAttempts, ListNodes, queries
from stepwell.engine.aio.engine import AsyncEngine
from stepwell.engine.aio.run import AsyncRun
from stepwell.engine.runs.stored import StoredRun
from stepwell.engine.show import run as showing
from stepwell.errors import NodeNotFound
from tests.engine.conftest import OpenEngine


def public_names(thing: object) -> list[str]:
    """What autocomplete offers. Nothing is hidden but by an underscore."""
    assert "__dir__" not in {name for kind in type(thing).__mro__[:-1] for name in vars(kind)}
    return [name for name in dir(thing) if not name.startswith("_")]


class Order(Workflow):
    broken: bool = False

    @step
    def validate(self) -> str:
        return "fine"

    @step
    def charge(self, ctx: Context) -> list[str]:
        if self.broken:
            raise ValueError("declined")
        assert repr(ctx) == f"<Context of charge, attempt 1, run {ctx.run_id}>"
        return public_names(ctx)

    @step
    def ship(self) -> None: ...


ENGINE = """
activate adopt audit_log close compare count_runs events get metrics on parts preview_bulk run runs save start start_many store
triggers wait work workflows
"""
RUN = """
audit cancel check checkpoint checkpoints children delete diff effects export export_graph fork forks freeze graph id
import_graph input logs metrics node nodes origin output outputs parent path pause progress reattempt replay result resume
retry row show state status wait why workflow
"""
CTX = """
attempt check checkpoint db effect idempotency_key input node_id node_name now order_key outcome outputs parents perform
progress random replaying run run_id seed state stopping uuid workflow
"""
NODE = "attempts child due_at error id name progress reason row seconds status"
ATTEMPT = "ancestry ended_at error id idempotency_key number outcome row seconds started_at status worker"
TRIGGERS = "add all backfill fire get pause remove resume versions"
BUILDER = "fan_out graph node workflow_name"


def test_autocomplete_shows_what_people_need(engine: Engine) -> None:
    run = engine.run(Order())
    assert public_names(engine) == ENGINE.split()
    assert public_names(run) == RUN.split()
    assert run.output("charge") == CTX.split()
    assert public_names(run.node("charge")) == NODE.split()
    assert public_names(run.node("charge").attempts[0]) == ATTEMPT.split()
    assert public_names(Builder("x")) == BUILDER.split()


def test_coroutines_have_the_same_names(sqlite_url: str) -> None:
    """Everything of an engine, its runs, its triggers and a client can be awaited; `sync` is what is behind."""

    async def look() -> None:
        async with Engine(sqlite_url) as engine:
            run = await engine.run(Order())
            behind_engine = {"parts", "store"}
            assert {*public_names(engine), *behind_engine} == {*ENGINE.split(), "sync"}
            assert public_names(run) == sorted([*RUN.split(), "sync"])
            assert public_names(engine.triggers) == sorted([*TRIGGERS.split(), "sync"])
            with Client("http://127.0.0.1:9") as client:
                of_clients = {"replay", "export"}  # what the server does, and `run.replay()` does here
                assert {*public_names(client), *behind_engine, "metrics", "on", "work"} == {
                    *ENGINE.split(),
                    *of_clients,
                }
                assert set(TRIGGERS.split()) <= set(dir(engine.sync.triggers)) & set(dir(client.triggers))
            async with Client("http://127.0.0.1:9") as behind:
                assert {*public_names(behind), *behind_engine} == {*public_names(behind.sync), "sync"}

    asyncio.run(look())


def test_doors_have_the_keywords_of_what_they_lead_to() -> None:
    for door, method in (
        *(
            (inspect.getattr_static(AsyncEngine, name), getattr(Engine, name))
            for name in ("run", "start", "start_many", "runs", "wait")
        ),
        *(
            (inspect.getattr_static(AsyncClient, name), getattr(Engine, name))
            for name in ("run", "start", "start_many", "runs", "wait")
        ),
        *((vars(AsyncRun)[name], getattr(stepwell.Run, name)) for name in ("wait", "retry", "fork", "resume", "logs")),
    ):
        assert list(inspect.signature(door).parameters) == list(inspect.signature(method).parameters), door


TO_CATCH = """
DefinitionError InputError RunCancelled RunConflict RunFailed RunNotFound RunPaused RunStillActive StepwellError StoreError
"""
TO_RAISE = "PermanentError RetryLater TransientError"


def test_errors_are_in_their_module_and_few_are_at_the_top() -> None:
    found = {name for name, each in vars(errors).items() if isinstance(each, type) and issubclass(each, Exception)}
    at_the_top = {name for name in stepwell.__all__ if name in found}
    assert at_the_top == {*TO_CATCH.split(), *TO_RAISE.split()}
    assert all(getattr(stepwell, name) is getattr(errors, name) for name in at_the_top)
    tree = errors.__doc__ or ""
    assert [name for name in sorted(found) if not re.search(rf"\b{name}\b", tree)] == []
    with pytest.raises(AttributeError, match="no attribute 'StoreBusy'"):
        stepwell.StoreBusy  # noqa: B018


def test_every_public_name_is_there() -> None:
    assert set(stepwell.__all__) <= set(dir(stepwell))
    assert all(hasattr(stepwell, name) for name in stepwell.__all__)
    assert {"errors", "reducers", "testing", "types"} <= set(dir(stepwell))
    assert callable(stepwell.testing.speedrun)
    assert callable(stepwell.types.register)
    assert stepwell.reducers.add(1, 2) == 3
    with pytest.raises(AttributeError, match="no attribute 'Enginee'"):
        stepwell.Enginee  # noqa: B018


def test_no_repr_reads_the_store(engine: Engine) -> None:
    """A debugger shows an object at every step."""
    run = engine.run(Order(), run_id="order-7")
    failed = engine.run(Order(broken=True), run_id="order-8", check=False).node("charge")
    w = Builder("wide")
    w.fan_out([1, 2], job="shop:do")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine.store, "read", lambda _: pytest.fail("the store was read"))
        assert repr(run) == "<Run order-7>"
        assert repr(engine) == f"<Engine {engine.store.url}>"
        assert repr(failed) == "<Node charge FAILED, 1 attempt>"
        assert repr(failed.attempts[0]) == "<Attempt 1 FAILED ValueError>"
        assert repr(w) == "<Builder wide, 2 nodes>"


def test_what_is_closed_is_still_shown(sqlite_url: str) -> None:
    with Engine(sqlite_url) as engine:
        run = engine.run(Order(), run_id="order-7")
    assert repr(run) == "<Run order-7>"
    assert repr(engine) == f"<Engine {sqlite_url} (closed)>"


def test_why_is_read_at_a_prompt(engine: Engine) -> None:
    why = engine.run(Order(broken=True), check=False).why()
    assert repr(why) == str(why)
    assert "ValueError: declined" in repr(why)


def test_a_node_that_is_not_there(engine: Engine) -> None:
    run = engine.run(Order(), run_id="order-7")
    with pytest.raises(
        NodeNotFound, match=r"^run order-7 has no node 'charg': there are: validate, charge, ship$"
    ) as caught:
        run.node("charg")
    assert (caught.value.run_id, caught.value.node) == ("order-7", "charg")
    assert isinstance(caught.value, KeyError)


def test_a_run_is_shown_as_a_tree_and_a_timeline(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    engine.run(Order(broken=True), check=False, run_id="order-8").show(tracebacks=True)
    told = capsys.readouterr().out
    for part in ("Order  FAILED", "order-8", "✗ charge", "⊘ ship", "ValueError: declined", "Traceback"):
        assert part in told
    w = Builder("wide")
    w.fan_out(range(60), job="tests.engine.jobs:same")
    run = engine.run(w)
    run.show()
    folded = capsys.readouterr().out
    assert "run.show(whole=True) shows all 60 nodes" in folded
    run.show(whole=True)
    assert len(capsys.readouterr().out.splitlines()) > 60


def test_a_large_run_is_shown_from_columns(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither its journal is read nor its graph made, and rows only of nodes of which more is said."""
    w = Builder("wide", on_failure="finish")
    parts = w.fan_out(range(300), job="tests.engine.jobs:same", name="part")
    broken = [w.node(each, job="tests.engine.jobs:fail", args={"message": each}, depends_on=None) for each in "xy"]
    w.node("end", job="tests.engine.jobs:nothing", depends_on=parts)
    row = engine.run(w, check=False).row
    monkeypatch.setattr(showing, "JOURNAL_READ", row.seq - 1)
    monkeypatch.setattr(Graph, "load", lambda *_: pytest.fail("the whole graph is made"))
    asked: list[tuple[Any, Any]] = []
    read = engine.store.read

    def noted(queries: Sequence[Any]) -> list[Any]:
        answers = read(queries)
        asked.extend(zip(queries, answers, strict=True))
        return answers

    monkeypatch.setattr(engine.store, "read", noted)
    text = io.StringIO()
    showing.print_run(Console(file=text, width=120), StoredRun(engine.store, row), str, tracebacks=False, whole=False)
    shown = re.sub(" +\n", "\n", text.getvalue())
    assert re.search(r"took +[\d.]+ s a step, 95 % within [\d.]+ s\n", shown)
    assert re.search(r"part_0 \.\. part_299 +300 × COMPLETED", shown)
    assert [shown.count(name) for name in ("ValueError: x", "ValueError: y", "after all 300")] == [1, 1, 1]
    kinds = Counter(type(query) for query, _ in asked)
    assert (kinds[queries.ListJournal], kinds[queries.GetGraph]) == (0, 1)
    rows = [row for query, rows in asked if isinstance(query, ListNodes | ListAttempts) for row in rows]
    assert len(rows) == 2 * len(broken)


def test_a_notebook_shows_a_picture_and_a_tree(engine: Engine) -> None:
    found = engine.run(Order(broken=True), check=False, run_id="order-8")._repr_html_()
    assert "<svg" in found
    assert "<pre" in found
    assert "order-8" in found
    assert (Order.workflow_graph()._repr_svg_() or "").startswith("<svg")
    w = Builder("wide")
    w.fan_out(range(300), job="tests.engine.jobs:same")
    assert w.graph()._repr_svg_() is None
    assert "<svg" not in engine.run(w)._repr_html_()


# Leaving


class Waits(Workflow):
    @step
    def asks(self) -> None: ...

    @step
    def waits(self) -> None:
        raise stepwell.RetryLater(3600)


def test_leaving_with_unfinished_runs_says_so(sqlite_url: str, caplog: pytest.LogCaptureFixture) -> None:
    with Engine(sqlite_url) as engine:
        engine.run(Order())
        engine.start(Waits(), run_id="w-1")
    (told,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert told.startswith("the engine was left with 1 run unfinished that it started: w-1 (")
    assert f"`stepwell resume w-1 --store {sqlite_url}` goes on with it" in told
    caplog.clear()
    with Engine(sqlite_url) as engine:
        engine.start_many([Waits() for _ in range(7)])
    (told,) = [record.getMessage() for record in caplog.records]
    assert "7 runs unfinished" in told
    assert "and 2 more" in told
    assert "stepwell work MODULE" in told


def test_what_is_lost_with_its_memory_is_said(caplog: pytest.LogCaptureFixture) -> None:
    with Engine("memory://") as engine:
        engine.start(Waits())
    assert "they are gone with it" in caplog.text


def test_who_finishes_or_only_looks_is_told_nothing(open_sqlite: OpenEngine, caplog: pytest.LogCaptureFixture) -> None:
    with open_sqlite() as engine:
        engine.run(Order())
        engine.run(Order(broken=True), check=False)
    with open_sqlite(runner=None) as engine:
        engine.start(Order(), run_id="left")
    with open_sqlite(workflows=[Order]) as engine:
        engine.get("left").wait(30)
    assert caplog.text == ""


# Notebooks and prompts


def test_a_notebook_runs_in_a_kernel(tmp_path: Path) -> None:
    """In a process of its own: kernels leave threads and sockets behind."""
    program = tmp_path / "notebook.py"
    program.write_text(
        """
import asyncio, sys
if sys.platform == "win32":
    asyncio.set_event_loop_policy(asyncio.WindowsSelectorEventLoopPolicy())
import nbformat
from nbclient import NotebookClient

cells = [
    "from stepwell import Engine, Workflow, step",
    "class Order(Workflow):\\n    @step\\n    def ship(self) -> str:\\n        return 'shipped'\\n"
    "    @step\\n    async def thank(self) -> str:\\n        return 'thanks'",
    "Order.workflow_graph()",
    "engine = Engine('sqlite:///x.db', workflows=[Order])\\nrun = engine.run(Order(), run_id='order-7')\\nrun",
    "print(run.output('thank'), repr(run)); run.why()",
    "run.show()",
    "engine.close()",
    "async with Engine('sqlite:///x.db') as engine:\\n"
    "    run = await engine.run(Order(), run_id='order-8')\\n    print(await run.output('thank'))\\n    display(run)",
    "class Order(Workflow):\\n    @step\\n    def ship(self) -> str:\\n        return 'changed'\\n",
    "with Engine('sqlite:///x.db') as engine:\\n    print(engine.run(Order(), run_id='order-9').output('ship'))",
]
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in cells])
NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
outputs = [cell.outputs for cell in notebook.cells]

def printed(cell):  # a kernel may send a line in pieces
    return "".join(each.text for each in outputs[cell] if each.output_type == "stream")

assert "<svg" in outputs[2][0].data["image/svg+xml"], outputs[2]
assert "<svg" in outputs[3][0].data["text/html"]
assert outputs[3][0].data["text/plain"] == "<Run order-7>"
assert printed(4) == "thanks <Run order-7>\\n", outputs[4]
assert "completed" in outputs[4][-1].data["text/plain"], outputs[4]
assert len(outputs[5]) == 1, outputs[5]
assert "order-7" in outputs[5][0].data["text/plain"], outputs[5]
assert printed(7) == "thanks\\n", outputs[7]
assert "<svg" in outputs[7][-1].data["text/html"], outputs[7]
assert printed(9) == "changed\\n", outputs[9]
print("all cells ran")
"""
    )
    done = subprocess.run(
        [sys.executable, program], cwd=tmp_path, capture_output=True, text=True, timeout=110, check=False
    )
    assert "all cells ran" in done.stdout, done.stdout + done.stderr
