"""Measure one case on one store, in a process of its own: a JSON object of numbers by label. `compare` runs it.

python one_case.py chain sqlite:///path     (in a checkout, with its `src` in PYTHONPATH)
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path[0] = str(Path.cwd())  # and not this folder, which has a module named redis

from bench.shapes import Diamond, chain, fan, nothing  # noqa: E402 -- of the checkout it is started in
from stepwell import Builder, Context, Engine  # noqa: E402

Numbers = dict[str, float]
"""By what they are, with the unit in front: µs, s, MB, bytes."""
RUNS = 6_000


def chain_node(engine: Engine, url: str) -> Numbers:
    return {"µs a node of a chain of 1,000": timed(lambda: engine.run(chain(1_000))) * 1e6 / 1_000}


def fan_node(engine: Engine, url: str) -> Numbers:
    return {"µs a node of a fan of 10,000": timed(lambda: engine.run(fan(10_000))) * 1e6 / 10_002}


def diamonds(engine: Engine, url: str) -> Numbers:
    all_at_once = timed(lambda: [run.wait() for run in engine.start_many(Diamond() for _ in range(1_000))])
    return {"µs of 1,000 diamonds, each": all_at_once * 1e6 / 1_000}


def diamond(engine: Engine, url: str) -> Numbers:
    return {"µs of one diamond": statistics.median(timed(lambda: engine.run(Diamond())) for _ in range(100)) * 1e6}


def read_parent(ctx: Context) -> int:
    return int(ctx.outputs[f"node_{int(ctx.node_name.removeprefix('node_')) - 1}"]) + 1


def outputs(engine: Engine, url: str) -> Numbers:
    """Jobs of a `Builder` that read an output by its name: processor time, which others on the machine disturb less."""
    found = {}
    for nodes in (200, 1_000, 10_000):
        builder = Builder("reading")
        builder.node("node_0", job=one)
        for number in range(1, nodes):
            builder.node(f"node_{number}", job=read_parent)
        start = time.process_time()
        engine.run(builder).check()
        label = f"µs a node of a chain of {nodes:,} that reads ctx.outputs[name], processor time"
        found[label] = (time.process_time() - start) * 1e6 / nodes
    return found


def one() -> int:
    return 1


def show(engine: Engine, url: str) -> Numbers:
    engine.run(fan(100_000), run_id="wide")
    found = {}
    for command in ("show", "why"):
        seconds, megabytes = usage([sys.executable, "-m", "stepwell", command, "wide", "--store", url])
        found |= {
            f"s of `stepwell {command}`, fan of 100,000, processor time": seconds,
            f"MB of `stepwell {command}`": megabytes,
        }
    return found


def close(engine: Engine, url: str) -> Numbers:
    seconds = []
    for _ in range(9):
        other = Engine(url, workflows=[Diamond])
        other.run(Diamond())
        time.sleep(0.2)  # until it listens
        seconds.append(timed(other.close))
    return {"µs of engine.close()": statistics.median(seconds) * 1e6}


def wait(engine: Engine, url: str) -> Numbers:
    """One process starts runs and waits, another works."""
    engine.close()
    command = [sys.executable, "-m", "stepwell", "work", "bench.shapes", "--store", url]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as worker:
        with Engine(url, runner=None) as starter:
            starter.start(Diamond()).wait(60)
            seconds = []
            for _ in range(60):
                time.sleep(0.06)  # longer than between two hints of a process on PostgreSQL
                seconds.append(timed(lambda: starter.start(Diamond()).wait(60)))
        worker.terminate()
    return {"µs from start to the end of run.wait(), another process works": statistics.median(seconds[10:]) * 1e6}


def memory(engine: Engine, url: str) -> Numbers:
    """Runs of one node in batches, with what SQLite keeps limited."""
    import apsw

    apsw.soft_heap_limit(4 * 1024 * 1024)
    builder = Builder("small")
    builder.node("only", job=nothing)

    def start_runs() -> tuple[int, int]:
        for _ in range(RUNS // 200):
            for run in engine.start_many([builder] * 200):
                run.wait()
        gc.collect()
        return sys.getallocatedblocks(), resident_bytes()

    start_runs()
    blocks, size = start_runs()
    for _ in range(3):
        last_blocks, last_size = start_runs()
    return {
        "blocks of Python's memory, a run of one node by start_many": (last_blocks - blocks) / RUNS / 3,
        "bytes of the process, a run of one node by start_many": (last_size - size) / RUNS / 3,
    }


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


CASES: dict[str, Callable[[Engine, str], Numbers]] = {
    "chain": chain_node,
    "fan": fan_node,
    "diamonds": diamonds,
    "diamond": diamond,
    "outputs": outputs,
    "show": show,
    "close": close,
    "wait": wait,
    "memory": memory,
}
ON = {"outputs": ("sqlite",), "show": ("sqlite",), "memory": ("sqlite",), "wait": ("postgres", "redis")}
"""The stores that a case is about, where it is not about all."""


def timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


_LAUNCH = """
import json, os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(process.pid, 0)
assert status == 0, sys.argv
print(json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
"""


def usage(command: list[str]) -> tuple[float, float]:
    """Seconds of processor time and megabytes of a command. A small process starts it: Linux counts the memory that the process
    which starts another had at that moment as the other's."""
    told = subprocess.run([sys.executable, "-c", _LAUNCH, *command], stdout=subprocess.PIPE, check=True).stdout
    seconds, megabytes = json.loads(told)
    return seconds, megabytes


def main(case: str, url: str) -> None:
    with Engine(url, workflows=[Diamond]) as engine:
        engine.run(Diamond())
        print(json.dumps(CASES[case](engine, url)))


if __name__ == "__main__":
    main(*sys.argv[1:])
