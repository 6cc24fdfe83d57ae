"""What child processes run: workflows whose bodies write to a ledger outside the engine, and workers that die."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

from stepwell import Builder, Context, Engine, RunConflict, RunNotFound, Workflow, step, task
from stepwell.core.model import Batch, Receipt, Sweep
from stepwell.engine.procedures import gates
from tests.engine import jobs
from tests.engine.ledger import note, noted


def enter(ledger: str, ctx: Context) -> str:
    """Every body says that it was entered, and gives what its parents gave, so that a hole would show."""
    note(ledger, ctx.node_name, ctx.attempt, os.getpid())
    above = list(ctx.outputs.all().values())
    assert None not in above, f"{ctx.node_name} was given nothing"
    return ctx.node_name


class Diamond(Workflow):
    """top -> (left, right) -> bottom, where right must not run twice."""

    ledger: str

    @step
    def top(self, ctx: Context) -> str:
        return enter(self.ledger, ctx)

    @task(depends_on=top)
    def left(self, ctx: Context) -> str:
        return enter(self.ledger, ctx)

    @task(depends_on=top, on_lost="interrupt")
    def right(self, ctx: Context) -> str:
        return enter(self.ledger, ctx)

    @step(depends_on=[left, right])
    async def bottom(self, left: str, right: str, ctx: Context) -> str:
        assert (left, right) == ("left", "right")
        return enter(self.ledger, ctx)


class Chain(Workflow):
    ledger: str

    @step
    def one(self, ctx: Context) -> str:
        return enter(self.ledger, ctx)

    @step
    async def two(self, ctx: Context) -> str:
        return enter(self.ledger, ctx)

    @step
    def three(self, ctx: Context) -> str:
        return enter(self.ledger, ctx)


class Failing(Workflow):
    """Its failure closes a gate, whose work a dying process leaves to others."""

    ledger: str

    @step
    def one(self, ctx: Context) -> str:
        return enter(self.ledger, ctx)

    @step
    def breaks(self, ctx: Context) -> None:
        enter(self.ledger, ctx)
        raise ValueError("broken")

    @step
    def never(self, ctx: Context) -> str:
        return enter(self.ledger, ctx)


SHORT_LEASE = 300_000
"""Microseconds. What a gate is held for is finished by others when its lease is over; half a minute is long for a test."""
SHAPES: dict[str, type[Workflow]] = {each.__name__: each for each in (Diamond, Chain, Failing)}


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Mortal:
    """Lets the process die right before, or right after, its n-th commit. Sweeps do not count: they come by the clock."""

    def __init__(self, engine: Engine, number: int, when: str) -> None:
        self._commit = engine.store.commit
        self._number = number
        self._when = when
        self._count = 0
        self._lock = threading.Lock()
        engine.store.commit = self.commit  # type: ignore[method-assign]

    def commit(self, batch: Batch) -> list[Receipt]:
        if len(batch) == 1 and isinstance(batch[0], Sweep):
            return self._commit(batch)
        with self._lock:
            self._count += 1
            last = self._count == self._number
            if last and self._when == "before":
                die()
            receipts = self._commit(batch)
            if last:
                die()
            return receipts


def run_and_die(url: str, shape: str, ledger: str, number: int, when: str, **options: Any) -> None:
    """Start a run and work on it until the n-th commit."""
    gates.GATE_LEASE = SHORT_LEASE
    engine = Engine(url, **options)
    Mortal(engine, number, when)
    engine.run(SHAPES[shape](ledger=ledger), run_id="r", check=False)
    engine.close()


def adopt_and_die(url: str, number: int, when: str) -> None:
    """Go on with the run of somebody who died, and die too."""
    engine = Engine(url)
    Mortal(engine, number, when)
    engine.adopt("r").wait()
    engine.close()


def ask_and_die(url: str, verb: str, number: int, when: str) -> None:
    """Ask something of a run, and die at the n-th commit of it."""
    gates.GATE_LEASE = SHORT_LEASE
    engine = Engine(url, runner=None)
    Mortal(engine, number, when)
    getattr(engine.get("r"), verb)()
    engine.close()


def fork_and_die(url: str, number: int, when: str) -> None:
    """Fork a run that is loaded and shared in several commits, and die at the n-th."""
    gates.GATE_LEASE = SHORT_LEASE
    engine = Engine(url, runner=None)
    Mortal(engine, number, when)
    engine.get("r").fork("last", run_id="fork")
    engine.close()


def start_large_and_die(url: str, nodes: int, number: int, when: str) -> None:
    """Start a run that takes several commits to load, and die at the n-th."""
    engine = Engine(url, runner=None)
    Mortal(engine, number, when)
    w = Builder("wide")
    w.fan_out(range(nodes), job=jobs.same, depends_on=None)
    engine.start(w, run_id="r")
    engine.close()


def die_in_the_body(ledger: str, ctx: Context) -> str:
    note(ledger, ctx.node_name, ctx.attempt, os.getpid())
    if ctx.attempt == 1:
        die()
    return ctx.node_name


def always_die(ledger: str, ctx: Context) -> None:
    note(ledger, ctx.node_name, ctx.attempt, os.getpid())
    die()


def hold(ledger: str, go_on: str, ctx: Context) -> str:
    """The first attempt waits until somebody lets it go; the next does not."""
    note(ledger, ctx.node_name, ctx.attempt, os.getpid())
    while ctx.attempt == 1 and not Path(go_on).exists():
        time.sleep(0.005)
    note(ledger, "ended", ctx.attempt, os.getpid())
    return f"attempt {ctx.attempt}"


def hold_and_speak(ledger: str, go_on: str, ctx: Context) -> str:
    print("attempt", ctx.attempt, "begins")
    while ctx.attempt == 1 and not Path(go_on).exists():
        time.sleep(0.005)
    print("attempt", ctx.attempt, "ends")
    note(ledger, "ended", ctx.attempt, os.getpid())
    return f"attempt {ctx.attempt}"


def mended(flag: str) -> str:
    """Fails until somebody has mended it."""
    if not Path(flag).exists():
        raise ValueError("not mended")
    return "mended"


def ask(engine: Engine, run_id: str, verb: str, node: str) -> str:
    """Ask something of a run: what came of it. Anything but an answer is an error, and raised."""
    try:
        run = engine.get(run_id)
        getattr(run, verb)(*([node] if verb == "reattempt" else []))
    except RunNotFound:
        return "gone"
    except RunConflict:
        return "conflict"
    return "done"


def ask_in_turn(url: str, asks: list[tuple[str, str, str]], together: Any, ledger: str) -> None:
    """Ask one after the other, each at the same moment as somebody else asks something of the same run."""
    with Engine(url, runner=None) as engine:
        for number, (run_id, verb, node) in enumerate(asks):
            together.wait(60)
            note(ledger, number, ask(engine, run_id, verb, node))


def small(ledger: str, ctx: Context) -> str:
    note(ledger, ctx.run_id, ctx.node_name, os.getpid())
    time.sleep(0.002)
    return ctx.node_name


def slower(ledger: str, ctx: Context) -> str:
    note(ledger, ctx.run_id, ctx.node_name, os.getpid())
    time.sleep(0.01)
    return ctx.node_name


def together(ledger: str, ctx: Context) -> str:
    """Like `small`, but until two processes are at work, none of its bodies ends."""
    note(ledger, ctx.run_id, ctx.node_name, os.getpid())
    while len({line.split()[-1] for line in noted(ledger)}) < 2:
        time.sleep(0.005)
    return ctx.node_name


def serve(url: str, **options: Any) -> None:
    """Work on everything until killed."""
    engine = Engine(url, **options)
    engine.work(wait=0)
    threading.Event().wait()


def serve_until_done(url: str, own: int, ledger: str, done: str, **options: Any) -> None:
    """Start some runs, and work on these and all others until somebody says that it is enough."""
    with Engine(url, max_concurrent_nodes=2, close_seconds=5, **options) as engine:
        for number in range(own):
            w = Builder("own")
            w.node("first", job=small, args={"ledger": ledger})
            w.node("second", job=small, args={"ledger": ledger})
            engine.start(w, run_id=f"own-{os.getpid()}-{number}")
        engine.work(wait=0)
        while not Path(done).exists():
            time.sleep(0.01)


def stop_when_told(began: str, stopped: str, ctx: Context) -> None:
    """Says when it was told to stop, by a clock that all processes of a machine share."""
    note(began, ctx.run_id)
    until = time.monotonic() + 60
    while not ctx.stopping and time.monotonic() < until:
        time.sleep(0.002)
    note(stopped, time.monotonic())
    ctx.check()


async def stop_on_the_loop(began: str, stopped: str, ctx: Context) -> None:
    note(began, ctx.run_id)
    try:
        await asyncio.sleep(60)
    finally:
        note(stopped, time.monotonic())
