"""`def`, `async def` and `isolation="process"` bodies are equal."""

from __future__ import annotations

import asyncio
import os
import re
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest

from stepwell import Builder, Context, Engine, Workflow, step
from stepwell.core.graph.spec import Body
from stepwell.engine.bodies.kinds import KINDS, ByKind, Limits
from stepwell.engine.bodies.threads import BodyThreads
from tests.engine import jobs
from tests.engine.conftest import OpenEngine
from tests.engine.waiting import eventually


async def answer() -> int:
    await asyncio.sleep(0)
    return 42


class Mixed(Workflow):
    @step
    def in_a_thread(self) -> list[str]:
        return [threading.current_thread().name]

    @step
    async def on_the_loop(self, in_a_thread: list[str]) -> list[str]:
        await asyncio.sleep(0.001)
        return [*in_a_thread, threading.current_thread().name]

    @step(isolation="process")
    def in_a_process(self, on_the_loop: list[str]) -> dict[str, Any]:
        return {"names": on_the_loop, "pid": os.getpid()}

    @step(isolation="process")
    async def in_a_process_too(self, in_a_process: dict[str, Any], ctx: Context) -> int:
        await asyncio.sleep(0)
        assert ctx.outputs["on_the_loop"] == in_a_process["names"]
        return os.getpid()

    @step
    def returns_a_coroutine(self) -> Any:
        return answer()

    @step
    def ends(self, returns_a_coroutine: int) -> int:
        return returns_a_coroutine


def test_bodies_of_every_kind_follow_each_other(engine: Engine) -> None:
    run = engine.run(Mixed())
    assert run.output("on_the_loop") == ["stepwell-body", "stepwell-loop"]
    assert run.output("in_a_process")["pid"] != os.getpid() != run.output("in_a_process_too")
    assert run.output("ends") == 42


def test_a_process_is_used_again(sqlite_engine: Engine) -> None:
    w = Builder("again")
    for number in range(4):
        w.node(f"n{number}", job=jobs.whoami, isolation="process")
    assert len(set(sqlite_engine.run(w).outputs.values())) == 1


def test_two_processes_run_at_once_and_no_more(sqlite_engine: Engine, tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    w = Builder("many")
    w.fan_out(range(8), job=jobs.meet, args=lambda _: {"folder": str(here), "number": 2}, isolation="process")
    assert len(set(sqlite_engine.run(w).outputs.values())) == 2


@pytest.mark.parametrize(("options", "allowed"), [({}, 8), ({"max_concurrent_nodes": 3}, 3)])
def test_as_many_threads_run_as_allowed_and_no_more(
    open_engine: OpenEngine, options: dict[str, Any], allowed: int
) -> None:
    at_once = most = 0
    lock = threading.Lock()

    class Wide(Workflow):
        number: int

        @step
        def work(self) -> None:
            nonlocal at_once, most
            with lock:
                at_once += 1
                most = max(most, at_once)
            eventually(lambda: most >= allowed)
            time.sleep(0.003)
            with lock:
                at_once -= 1

    runs = open_engine(**options).start_many(Wide(number=number) for number in range(30))
    for run in runs:
        run.wait(30)
    assert most == allowed


def test_as_many_async_bodies_wait_at_once_as_allowed(open_engine: OpenEngine) -> None:
    """Two hundred naps of 0.2 s take far less than the 40 s that they are long in all."""
    w = Builder("naps")
    w.fan_out(range(200), job=jobs.nap_on_the_loop, args=lambda _: {"seconds": 0.2})
    before = time.monotonic()
    open_engine(max_concurrent_nodes=1).run(w)
    assert time.monotonic() - before < 20


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_a_body_is_told_the_same_wherever_it_runs(sqlite_engine: Engine, isolation: Any) -> None:
    w = Builder("told")
    first = w.node("first", job=jobs.same, args={"item": [1]})
    w.node("second", job=jobs.describe, isolation=isolation)
    run = sqlite_engine.run(w)
    second = run.node("second")
    assert run.output("second") == {
        "run_id": run.id,
        "workflow": "told",
        "node_name": "second",
        "attempt": 1,
        "idempotency_key": f"{run.id}:{second.id}",
        "stopping": False,
        "run": {"id": run.id, "workflow": "told", "input": {}},
        "outputs": {first: [1]},
    }


def test_bodies_behind_one_that_takes_long_get_other_threads() -> None:
    """A look later, and only if no body has ended since the look before: a short one is over before a thread is awake."""
    later: list[None] = []
    called: list[int] = []
    worker: Any = SimpleNamespace(commit_soon=lambda: later.append(None), count=lambda kind: 9)
    threads = BodyThreads(worker, 4)
    threads.call = called.append  # type: ignore[method-assign]
    waiting: Any = [object(), object(), object()]
    threads.call_if_stuck()
    assert (len(later), called) == (0, []), "nothing waits"
    for held in waiting:
        threads.add(held)
    for looks in (1, 2):
        threads._ended += 5
        threads.call_if_stuck()
        assert (len(later), called) == (looks, []), "bodies end: look again"
    threads.call_if_stuck()
    assert (len(later), called) == (2, [3]), "none has ended"


def test_one_table_lists_the_kinds() -> None:
    """A new kind touches this table and its own file; the types that name each kind are as complete."""
    assert tuple(KINDS) == get_args(Body) == ByKind._fields
    assert [kind.executor().kind for kind in KINDS.values()] == list(KINDS)
    assert {kind.limit for kind in KINDS.values()} <= set(Limits._fields)


def test_no_other_module_of_the_engine_names_a_kind() -> None:
    """`BodyKind` says what differs; everything else of a kind is in its executor."""
    room = Path(__file__).parents[2] / "src/stepwell/engine"
    own = {"kinds.py", "threads.py", "loop.py", "process.py"}
    files = [file for folder in ("bodies", "scheduling", "worker") for file in (room / folder).glob("*.py")]
    literal = re.compile(r'(?<!isolation=)"(thread|loop|process)"')
    assert [file.name for file in files if file.name not in own and literal.search(file.read_text())] == []
