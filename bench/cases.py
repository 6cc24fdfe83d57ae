"""The benchmarks. Each returns rows for the table: what, the bar, what was measured, and whether the bar is met."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from stepwell import Engine
from stepwell.stores import open_store

from .documents import documents
from .first_hour import annotations, importing, loops
from .fleet import fleet
from .floors import bare_commits
from .held import claims_beside_held_runs, lists_among_stored_runs
from .http import on_http
from .pipelines import pipelines
from .postgres import postgres
from .processes import SMALLEST
from .redis import on_redis
from .rows import Row, measure, timed
from .shapes import (
    Diamond,
    ask_recorded,
    ask_unrecorded,
    chain,
    do_not_name_it,
    fan,
    fetch_recorded,
    fetch_unrecorded,
    name_it,
    waiting,
)
from .slow_store import SlowStore
from .ui import ui

Body: TypeAlias = Callable[..., None]


def chains(folder: Path) -> list[Row]:
    """Floor and chain in turn, so that both see the same machine; the median of the ratios counts."""
    nodes, rounds = 1_000, 7
    results = []
    with Engine(f"sqlite:///{folder}/chain.db") as engine:
        engine.run(chain(3))
        for _ in range(rounds):
            floor = bare_commits(folder, nodes)
            builder = chain(nodes)
            ours = timed(lambda builder=builder: engine.run(builder))  # type: ignore[misc]
            results.append((ours / floor, floor, ours, ours <= 3 * floor))
    ratio, floor, ours, _ = sorted(results)[rounds // 2]
    met = sum(result[3] for result in results) > rounds // 2
    measured = (
        f"{ours:.3f} s = {ratio:.2f} x the floor of {floor:.3f} s (+{(ours - floor) / nodes * 1e3:.3f} ms a node)"
    )
    return [
        Row("chain of 1,000, SQLite FULL", "<= 3.0 x bare commits, both into logs that have the space", measured, met)
    ]


def effects(folder: Path) -> list[Row]:
    """The same chain with and without recording what its bodies ask, in turn; the median of the ratios counts."""
    work = "chain of 1,000, each records one effect of 1 KB"
    with _service() as os.environ["BENCH_SERVICE"]:
        return [
            _recording(
                folder / "http.db", f"{work}: a request to a service on this machine", fetch_recorded, fetch_unrecorded
            ),
            _recording(
                folder / "nothing.db", f"{work}: a function that does nothing", ask_recorded, ask_unrecorded
            )._replace(bar="none: no user has such a function", met=None),
        ]


def _recording(store: Path, work: str, recorded: Body, unrecorded: Body) -> Row:
    nodes, rounds = 1_000, 7
    results = []
    with Engine(f"sqlite:///{store}") as engine:
        engine.run(chain(3, recorded))
        for _ in range(rounds):
            plain, recording = chain(nodes, unrecorded), chain(nodes, recorded)
            without = timed(lambda builder=plain: engine.run(builder))  # type: ignore[misc]
            ours = timed(lambda builder=recording: engine.run(builder))  # type: ignore[misc]
            results.append((ours / without, without, ours))
    ratio, without, ours = sorted(results)[rounds // 2]
    more = (ours - without) / nodes * 1e6
    measured = f"{ratio:.2f} x ({ours:.3f} and {without:.3f} s, {more:+.0f} us a node)"
    return Row(work, "<= 1.10 x without", measured, ratio <= 1.10)


@contextmanager
def _service() -> Iterator[str]:
    command = [sys.executable, "-m", "bench.processes", "service"]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        yield child.stdout.readline().strip()
    finally:
        child.stdin.close()
        child.wait(10)


def checkpoints(folder: Path) -> list[Row]:
    """A chain without and with a checkpoint at every node, in turn; and whether the hundredth costs what the first did."""
    with Engine(f"sqlite:///{folder}/checkpoints.db") as engine:
        engine.run(chain(3, name_it))
        found = []
        for _ in range(7):
            without = timed(partial(engine.run, chain(1_000, do_not_name_it)))
            found.append((timed(partial(engine.run, chain(1_000, name_it))) / without, without))
        short = statistics.median(timed(partial(engine.run, chain(500, name_it))) / 500 for _ in range(5))
        long = timed(partial(engine.run, chain(5_000, name_it))) / 5_000
    ratio, without = sorted(found)[len(found) // 2]
    cost = f"{ratio:.2f} x, {(ratio - 1) * without * 1e3:+.0f} us a node"
    each = f"{long / short:.2f} x ({short * 1e6:.0f} and {long * 1e6:.0f} us)"
    return [
        Row("a named checkpoint at each node of a chain of 1,000", "<= 1.10 x without", cost, ratio <= 1.10),
        Row("cost a node with one, chain of 500 -> 5,000", "grows <= 1.25 x", each, long <= 1.25 * short),
    ]


def replays(folder: Path) -> list[Row]:
    """Each in an engine that has not seen the run before, so that the graph is read too; the median counts."""
    url, times = f"sqlite:///{folder}/replay.db", []
    with Engine(url) as engine:
        run = engine.run(chain(1_000, side_effects="pure"))
    for _ in range(7):
        with Engine(url, runner=None) as engine:
            times.append(timed(engine.get(run.id).replay))
    found = statistics.median(times) * 1e3
    return [Row("replay of 1,000 pure nodes, SQLite", "<= 100 ms", f"{found:.0f} ms", found <= 100)]


def fans(folder: Path) -> list[Row]:
    rates = []
    with Engine(f"sqlite:///{folder}/fan.db") as engine:
        engine.run(fan(3))
        for _ in range(5):
            builder = fan(10_000)
            rates.append(10_002 / timed(lambda builder=builder: engine.run(builder)))  # type: ignore[misc]
    rate = statistics.median(rates)
    return [Row("1 -> 10,000 -> 1, SQLite FULL", ">= 20,000 nodes/s", f"{rate:,.0f} nodes/s", rate >= 20_000)]


def growth(folder: Path) -> list[Row]:
    found = {width: _process("wide", str(folder), str(width)) for width in (100, 1_000, 10_000, 100_000)}
    cost = {width: result["seconds"] / (width + 2) * 1e6 for width, result in found.items()}
    ratio, memory = cost[100_000] / cost[100], found[100_000]["megabytes"]
    shown = ", ".join(f"{width:,}: {microseconds:.0f} us" for width, microseconds in cost.items())
    return [
        Row("cost a node, fan of 100 -> 100,000", "grows <= 1.5 x", f"{ratio:.2f} x ({shown})", ratio <= 1.5),
        Row("peak memory at 100,000", "<= 300 MB", f"{memory:.0f} MB", memory <= 300),
    ]


def diamonds(folder: Path) -> list[Row]:
    rates, alone = [], []
    with Engine(f"sqlite:///{folder}/diamonds.db") as engine:
        engine.run(Diamond())
        for _ in range(3):
            start = time.perf_counter()
            for run in engine.start_many(Diamond() for _ in range(1_000)):
                run.wait()
            rates.append(1_000 / (time.perf_counter() - start))
        alone = [timed(lambda: engine.run(Diamond())) for _ in range(100)]
    rate, median = statistics.median(rates), statistics.median(alone) * 1e3
    return [
        Row("1,000 diamonds by start_many", ">= 2,500 runs/s", f"{rate:,.0f} runs/s", rate >= 2_500),
        Row("one diamond on an idle engine", "<= 3 ms median", f"{median:.2f} ms", median <= 3),
    ]


def sharing(folder: Path) -> list[Row]:
    """The same 1,000 diamonds, worked on by one process and by two on one file; the best of three each, in turn."""
    alone, together, shares = [], [], []
    for round in range(3):
        alone.append(_shared(folder / f"one-{round}", 1)[0])
        rate, settled = _shared(folder / f"two-{round}", 2)
        together.append(rate)
        shares.append(min(settled) / sum(settled))
    ratio = statistics.median(together) / statistics.median(alone)
    rates = f"{statistics.median(together):,.0f} and {statistics.median(alone):,.0f} runs/s"
    measured = f"{ratio:.2f} x ({rates}; the smaller share {min(shares):.0%})"
    return [Row("two processes on one file, 1,000 diamonds", ">= 0.7 x the rate of one", measured, ratio >= 0.7)]


def _shared(folder: Path, workers: int) -> tuple[float, list[int]]:
    folder.mkdir()
    with Engine(f"sqlite:///{folder}/shared.db", runner=None) as engine:
        runs = engine.start_many(Diamond() for _ in range(1_000))
        children = [_start("serve", str(folder), str(number)) for number in range(workers)]
        time.sleep(0.5)
        start = time.perf_counter()
        (folder / "go").touch()
        for run in runs:
            run.wait(60)
        seconds = time.perf_counter() - start
        (folder / "done").touch()
        settled = [json.loads(child.communicate(timeout=30)[0])["settled"] for child in children]
    return 1_000 / seconds, settled


def outputs(folder: Path) -> list[Row]:
    """Jobs of a `Builder` that read the output of their parent by its name."""
    costs = [*measure("outputs", f"sqlite:///{folder}/outputs.db").values()]
    ratio = costs[-1] / costs[0]
    shown = f"{ratio:.2f} x ({', '.join(f'{cost:.0f} us' for cost in costs)} of processor time)"
    work = "cost a node, chain of 200 -> 10,000 that reads an output by its name"
    return [Row(work, "grows <= 1.5 x", shown, ratio <= 1.5)]


def commands(folder: Path) -> list[Row]:
    show, show_memory, why, _ = measure("show", f"sqlite:///{folder}/commands.db").values()
    shown = f"{show:.2f} s of processor time, {show_memory:.0f} MB"
    return [
        Row("`stepwell show` of a fan of 100,000", "<= 1 s, <= 150 MB", shown, show <= 1 and show_memory <= 150),
        Row("`stepwell why` of the same run", "<= 0.5 s", f"{why:.2f} s of processor time", why <= 0.5),
    ]


def memory(folder: Path) -> list[Row]:
    blocks, size = measure("memory", f"sqlite:///{folder}/memory.db").values()
    shown = f"{size:.0f} bytes, {blocks:.2f} blocks of Python's"
    work = "memory that a run of one node by start_many leaves, SQLite's own held at 4 MB"
    return [Row(work, "<= 100 bytes", shown, size <= 100)]


def asynchronous(folder: Path) -> list[Row]:
    overs = []
    with Engine(f"sqlite:///{folder}/async.db") as engine:
        engine.run(waiting(3))
        for _ in range(7):
            builder = waiting(1_000)
            overs.append((timed(lambda builder=builder: engine.run(builder)) - 0.010) * 1e3)  # type: ignore[misc]
    over = statistics.median(overs)
    return [Row("1,000 async bodies that wait 10 ms", "<= 80 ms over the ideal", f"{over:.0f} ms over", over <= 80)]


def small(folder: Path) -> list[Row]:
    bare = statistics.median(timed(lambda: _python("pass")) for _ in range(9)) * 1e3
    imported = statistics.median(timed(lambda: _python("import stepwell")) for _ in range(9)) * 1e3 - bare
    seconds, memory = [], 0.0
    for _ in range(7):
        start = time.perf_counter()
        memory = int(_python(SMALLEST)) / 1024
        seconds.append(time.perf_counter() - start)
    program = statistics.median(seconds) * 1e3
    return [
        Row("import stepwell", "<= 100 ms", f"{imported:.0f} ms", imported <= 100),
        Row("smallest durable program, fresh process", "<= 300 ms", f"{program:.0f} ms", program <= 300),
        Row("its memory", "<= 60 MB", f"{memory:.0f} MB", memory <= 60),
    ]


def _python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def _start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-m", "bench.processes", *arguments], stdout=subprocess.PIPE, text=True)


def _process(*arguments: str) -> dict[str, Any]:
    output, _ = _start(*arguments).communicate(timeout=120)
    found: dict[str, Any] = json.loads(output)
    return found


def held(folder: Path) -> list[Row]:
    without, beside = claims_beside_held_runs(folder)
    ratio = beside / without
    measured = f"{ratio:.2f} x ({without * 1e6:.0f} and {beside * 1e6:.0f} us)"
    return [
        Row(
            "claims among 300 runs beside a paused run of 100,000 READY nodes",
            "<= 1.1 x without",
            measured,
            ratio <= 1.1,
        )
    ]


def stored(folder: Path) -> list[Row]:
    found = lists_among_stored_runs(folder)
    slowest = max(found.values()) * 1e3
    shown = ", ".join(f"{name} {seconds * 1e3:.1f} ms" for name, seconds in found.items())
    return [Row("lists with 100,000 runs stored", "<= 50 ms each", shown, slowest <= 50)]


def far(folder: Path) -> list[Row]:
    """A store that takes 20 ms to answer: what counts is how often it is asked."""
    store = SlowStore(open_store(f"sqlite:///{folder}/far.db?synchronous=normal"), 0.02)
    with Engine(store) as engine:
        engine.run(chain(3))
        rows = []
        for work, builder, most in (("chain of 100", chain(100), 1.25 * 101 * 0.02), ("fan of 1,000", fan(1_000), 1.5)):
            store.calls.clear()
            seconds = timed(lambda builder=builder: engine.run(builder))  # type: ignore[misc]
            asked = f"{store.calls['commit']} commits, {store.calls['read']} reads"
            rows.append(Row(f"{work}, 20 ms away", f"<= {most:.2f} s", f"{seconds:.2f} s, {asked}", seconds <= most))
    return rows


CASES: dict[str, Callable[[Path], list[Row]]] = {
    "chain": chains,
    "effects": effects,
    "checkpoints": checkpoints,
    "replay": replays,
    "fan": fans,
    "growth": growth,
    "diamonds": diamonds,
    "outputs": outputs,
    "commands": commands,
    "memory": memory,
    "sharing": sharing,
    "async": asynchronous,
    "import": importing,
    "annotations": annotations,
    "loop": loops,
    "far": far,
    "held": held,
    "stored": stored,
    "pipelines": pipelines,
    "small": small,
    "documents": documents,
    "postgres": postgres,
    "redis": on_redis,
    "fleet": fleet,
    "http": on_http,
    "ui": ui,
}
