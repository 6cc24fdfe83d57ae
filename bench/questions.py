"""What everything that a body or a command can ask of a run costs, by the size of the run.

`python -m bench.questions [SIZE or SHAPE ...]` prints the table; without any it writes QUESTIONS.md. Bodies ask at the end of
the graph, the others when the run has ended. A number is the median of several questions, in microseconds of processor time
of the thread that asks; for commands, the seconds of a new process.
"""

from __future__ import annotations

import contextlib
import datetime
import io
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

from stepwell import Builder, Context, Delta, Engine, Run, reducers

SIZES = (100, 1_000, 10_000, 100_000)
RESULTS = Path(__file__).with_name("QUESTIONS.md")
ASKING = 9
"""How many nodes at the end of a graph ask."""

LINEAR = "all"
"""Marks questions whose answer, or whose work by definition, grows with the run."""


class State:
    count: Annotated[int, reducers.add] = 0


BODY: Mapping[str, Callable[[Context, str], Any]] = {
    "ctx.outputs[the parent's name]": lambda ctx, _: ctx.outputs[ctx.parents[0]],
    "ctx.outputs[the first node's name]": lambda ctx, _: ctx.outputs["first"],
    "name in ctx.outputs": lambda ctx, _: "nobody" in ctx.outputs,
    "ctx.outputs.parents()": lambda ctx, _: ctx.outputs.parents(),
    "ctx.state": lambda ctx, _: ctx.state,
    "ctx.input": lambda ctx, _: ctx.input,
    "ctx.parents, order_key, seed, idempotency_key": lambda ctx, _: (
        ctx.parents,
        ctx.order_key,
        ctx.seed,
        ctx.idempotency_key,
    ),
    "ctx.effect": lambda ctx, _: ctx.effect("nothing", lambda: None),
    "ctx.checkpoint": lambda ctx, _: ctx.checkpoint(ctx.node_name),
    "ctx.progress": lambda ctx, _: ctx.progress(1, 2),
    "ctx.outputs.all()": lambda ctx, _: ctx.outputs.all(),
}
RUN: Mapping[str, Callable[[Run, str], Any]] = {
    "run.status": lambda run, _: run.status,
    "repr(run)": lambda run, _: repr(run),
    "run.progress": lambda run, _: run.progress,
    "run.node(name)": lambda run, last: run.node(last),
    "attempt.ancestry": lambda run, last: run.node(last).attempts[-1].ancestry,
    "run.output(name)": lambda run, last: run.output(last),
    "run.result": lambda run, _: run.result,
    "run.why()": lambda run, _: run.why(),
    "run.why(name)": lambda run, last: run.why(last),
    "run.logs(name)": lambda run, last: run.logs(last),
    "run.effects(name)": lambda run, last: run.effects(last),
    "run.checkpoints()": lambda run, _: run.checkpoints(),
    "run.origin, forks": lambda run, _: (run.origin, run.forks),
    "run.outputs": lambda run, _: run.outputs,
    "run.nodes()": lambda run, _: run.nodes(),
    "run.state": lambda run, _: run.state,
    "run.metrics": lambda run, _: run.metrics,
    "run.checkpoint()": lambda run, _: run.checkpoint(),
    "run.export_graph()": lambda run, _: run.export_graph(),
    "run.show()": lambda run, _: _shown(run),
    "run.diff(itself)": lambda run, _: run.diff(run),
    "run.audit()": lambda run, _: run.audit(),
}
WHOLE = {
    *(
        "ctx.outputs.all()",
        "run.outputs",
        "run.nodes()",
        "run.state",
        "run.metrics",
        "run.checkpoint()",
        "run.checkpoints()",
    ),
    *("run.export_graph()", "run.show()", "run.diff(itself)", "run.audit()", "attempt.ancestry"),
}
"""Their answer is made of the whole run: an ancestry hash covers all ancestors."""

COMMANDS = {
    "stepwell show": ("show", "r"),
    "stepwell show NODE": ("show", "r", "LAST"),
    "stepwell show --json": ("show", "r", "--json"),
    "stepwell why": ("why", "r"),
    "stepwell why NODE": ("why", "r", "LAST"),
    "stepwell logs NODE": ("logs", "r", "LAST"),
    "stepwell ls": ("ls",),
    "stepwell graph": ("graph", "r"),
    "stepwell checkpoints": ("checkpoints", "r"),
    "stepwell audit": ("audit", "r"),
}


def begin() -> Delta[int]:
    return Delta(1, count=1)


def work() -> Delta[int]:
    return Delta(1, count=1)


def ask(ctx: Context) -> Delta[dict[str, float]]:
    """Ask every question, each for the first time in this attempt."""
    costs: dict[str, float] = {}
    for name, question in BODY.items():
        with contextlib.suppress(AttributeError):  # older code, which is measured beside this, has fewer questions
            costs[name] = _cost(lambda question=question: question(ctx, ""))
    return Delta(costs, count=1)


def chain(size: int) -> Builder:
    w = Builder("questions", state=State)
    w.node("first", job=begin)
    for number in range(size - ASKING - 1):
        w.node(f"n{number}", job=work)
    for number in range(ASKING):
        w.node(f"ask{number}", job=ask)
    return w


def diamonds(size: int) -> Builder:
    """One below the other."""
    w = Builder("questions", state=State)
    above = w.node("first", job=begin)
    for number in range((size - 1) // 3 - ASKING):
        sides = [w.node(f"{side}{number}", job=work, depends_on=above) for side in "ab"]
        above = w.node(f"n{number}", job=work, depends_on=sides)
    for number in range(ASKING):
        sides = [w.node(f"c{side}{number}", job=work, depends_on=above) for side in "ab"]
        above = w.node(f"ask{number}", job=ask, depends_on=sides)
    return w


def fan(size: int) -> Builder:
    """A node, very many below it, and one below these."""
    w = Builder("questions", state=State)
    w.node("first", job=begin)
    parts = w.fan_out(range(size - ASKING - 2), job=one, name="n")
    w.node("join", job=work, depends_on=parts)
    for number in range(ASKING):
        w.node(f"ask{number}", job=ask, depends_on="join")
    return w


def one(item: int) -> Delta[int]:
    return Delta(item, count=1)


SHAPES = {"chain": chain, "diamonds": diamonds, "fan": fan}


def _cost(call: Callable[[], Any]) -> float:
    """Microseconds of processor time."""
    start = time.thread_time()
    call()
    return (time.thread_time() - start) * 1e6


def _shown(run: Run) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        run.show()


def measure(shape: str, size: int, folder: Path) -> dict[str, float]:
    url = f"sqlite:///{folder / 'questions.db'}"
    last = f"ask{ASKING - 1}"
    found: dict[str, float] = {}
    with Engine(url) as engine:
        start = time.perf_counter()
        run = engine.run(SHAPES[shape](size), run_id="r")
        found["a node of the run"] = (time.perf_counter() - start) / size * 1e6
        asked = [run.output(f"ask{number}") for number in range(ASKING)]
        found |= {name: statistics.median(each[name] for each in asked) for name in BODY if name in asked[0]}
        for name, question in RUN.items():
            rounds = 1 if name in WHOLE and size > 10_000 else 5
            try:
                costs = [_cost(lambda question=question: question(run, last)) for _ in range(rounds)]
            except AttributeError:
                continue
            found[name] = statistics.median(costs)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    for name, words in COMMANDS.items():
        typed = [last if word == "LAST" else word for word in words]
        command = [sys.executable, "-m", "stepwell", *typed, "--store", url]
        start = time.perf_counter()
        subprocess.run(
            command, stdout=subprocess.DEVNULL, env=environment, cwd=folder, check=name != "stepwell logs NODE"
        )
        found[name] = (time.perf_counter() - start) * 1e6
    return found


def main(chosen: list[str]) -> int:
    """Sizes, and names of shapes; all of either if none is given."""
    sizes = tuple(int(each) for each in chosen if each.isdigit()) or SIZES
    shapes = [each for each in chosen if not each.isdigit()] or [*SHAPES]
    lines = [
        "# What questions cost",
        "",
        f"`python -m bench.questions`, {datetime.datetime.now(datetime.UTC).date()}, SQLite.",
        "Microseconds of processor time; of commands, seconds of a new process.",
        "*All*: the answer is made of the whole run.",
    ]
    for shape in shapes:
        columns: list[dict[str, float]] = []
        for size in sizes:
            with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as folder:
                columns.append(measure(shape, size, Path(folder)))
        lines += ["", f"| {shape} | {' | '.join(f'{size:,}' for size in sizes)} | |", "|---" * (len(sizes) + 2) + "|"]
        for name in columns[0]:
            scale, digits = (1e6, 2) if name in COMMANDS else (1, 0)
            cells = " | ".join(f"{column[name] / scale:,.{digits}f}" for column in columns)
            lines.append(f"| {name} | {cells} | {LINEAR if name in WHOLE else ''} |")
        print("\n".join(lines[-len(columns[0]) - 3 :]), flush=True)
    if not chosen:
        RESULTS.write_text("\n".join(lines) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
