"""What is measured in processes of its own: `python -m bench.processes CASE ARGUMENTS` prints one JSON object."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

SMALLEST = """
import tempfile
from stepwell import Builder, Engine

builder = Builder("smallest")
builder.node("only", job="bench.shapes:nothing")
with tempfile.TemporaryDirectory() as folder, Engine(f"sqlite:///{folder}/smallest.db") as engine:
    engine.run(builder)
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def wide(folder: str, width: str) -> dict[str, float]:
    """A fan in a fresh process: seconds, and the memory it took at its peak."""
    from stepwell import Engine

    from .shapes import fan

    with Engine(f"sqlite:///{folder}/wide-{width}.db") as engine:
        engine.run(fan(3))
        start = time.perf_counter()
        engine.run(fan(int(width)))
        seconds = time.perf_counter() - start
    return {"seconds": seconds, "megabytes": peak_kilobytes() / 1024}


def peak_kilobytes() -> int:
    """Of this process alone; `getrusage` would count what the parent had when it started this one."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def serve(folder: str, name: str) -> dict[str, float]:
    """Work on all diamonds in a file until none is left, from the moment the file `go` appears."""
    from stepwell import Engine

    from .shapes import Diamond

    settled = 0

    def count(_: object) -> None:
        nonlocal settled
        settled += 1

    while not (Path(folder) / "go").exists():
        time.sleep(0.001)
    with Engine(f"sqlite:///{folder}/shared.db", workflows=[Diamond]) as engine:
        engine.on("node", count)
        (Path(folder) / f"{name}.ready").touch()
        while not (Path(folder) / "done").exists():
            time.sleep(0.005)
    return {"settled": settled}


if __name__ == "__main__":
    case, *arguments = sys.argv[1:]
    print(json.dumps({"wide": wide, "serve": serve}[case](*arguments)))
