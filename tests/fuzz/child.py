"""The process in which inputs are tried: a line of JSON in, a line of JSON out."""

from __future__ import annotations

import json
import logging
import resource
import sys
import traceback
from pathlib import Path
from typing import Any

from .targets import TARGETS

HARD_LIMIT = 6 * 1024**3
"""Bytes of address space, so that the machine outlives what a target does."""


def main() -> None:
    megabytes = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (HARD_LIMIT, HARD_LIMIT))
    answers, sys.stdout = sys.stdout, sys.stderr
    logging.getLogger().addHandler(logging.NullHandler())  # or Python prints what bodies log
    for line in sys.stdin:
        target, given = json.loads(line)
        answers.write(json.dumps(_tried(target, given, megabytes)) + "\n")
        answers.flush()


def _tried(target: str, given: Any, megabytes: int) -> str | None:
    Path("/proc/self/clear_refs").write_text("5", "ascii")  # the peak begins anew
    before = _peak()
    try:
        TARGETS[target].run(given)
    except MemoryError:
        return "it takes all memory"
    except BaseException:
        return traceback.format_exc()[-2_000:]
    grown = _peak() - before
    return f"it takes {grown} MB" if grown > megabytes else None


def _peak() -> int:
    """Megabytes: the most that were used since the peak began anew."""
    status = Path("/proc/self/status").read_text("ascii", "replace")
    return int(status.partition("VmHWM:")[2].split()[0]) // 1024


if __name__ == "__main__":
    main()
