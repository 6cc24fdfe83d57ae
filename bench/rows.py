"""A row of the table of results, and how what it says is timed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parents[1]


class Row(NamedTuple):
    work: str
    bar: str
    measured: str
    met: bool | None
    """None: it has no bar, and is only reported."""


def timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def measure(case: str, url: str, checkout: Path = HERE) -> dict[str, float]:
    """What `one_case` measures with the code of a checkout, in a process of its own."""
    command = [sys.executable, str(Path(__file__).with_name("one_case.py")), case, url]
    environment = {**os.environ, "PYTHONPATH": f"{checkout / 'src'}{os.pathsep}{checkout}"}
    output = subprocess.run(command, cwd=checkout, env=environment, check=True, stdout=subprocess.PIPE).stdout
    numbers: dict[str, float] = json.loads(output)
    return numbers
