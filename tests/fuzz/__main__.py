"""python -m tests.fuzz [--seconds 300] [--seed 1] [--only template ...]

Tries the seeds of every target first, then draws inputs for its part of the time. What was found is printed with the input, or
the beginning of it; a seed draws the same inputs again. Exit code 1 says that something was found.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from .limits import Limited
from .targets import TARGETS

SHOWN = 500
EXAMPLES = 100


def main() -> int:
    asked = _arguments()
    names = asked.only or [*TARGETS]
    limited = Limited()
    found, tried = 0, 0
    try:
        for name in names:
            for number, each in enumerate(TARGETS[name].seeds):
                found += _report(f"{name}, its seed {number}", each, limited.problem(name, each))
            until, draws, drawn = time.monotonic() + asked.seconds / len(names), 0, 0
            while time.monotonic() < until:
                draws += 1
                inputs, findings = _draw(limited, name, asked.seed * 1_000_000 + draws, until)
                drawn, found = drawn + inputs, found + findings
            tried += len(TARGETS[name].seeds) + drawn
            print(f"{name}: {len(TARGETS[name].seeds)} seeds, {drawn:,} drawn", flush=True)
    finally:
        limited.close()
    print(f"{tried:,} inputs tried, {found} found", flush=True)
    return 1 if found else 0


def _draw(limited: Limited, name: str, number: int, until: float) -> tuple[int, int]:
    """Try a hundred inputs, up to the first finding; how many were tried, and how many findings there were."""
    found: list[int] = []
    tried = 0

    @seed(number)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(TARGETS[name].draw)
    def attempt(given: Any) -> None:
        nonlocal tried
        if not found and time.monotonic() < until:
            tried += 1
            found.extend([1] * _report(f"{name}, drawn by {number}", given, limited.problem(name, given)))

    attempt()
    return tried, len(found)


def _report(what: str, given: Any, problem: str | None) -> int:
    if problem is None:
        return 0
    print(f"FOUND {what}: {problem}\n  input: {ascii(given)[:SHOWN]}", flush=True)
    return 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make fuzz")
    parser.add_argument("--seconds", type=float, default=300.0, help="of all targets together, without their seeds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", choices=[*TARGETS], metavar="TARGET", help=", ".join(TARGETS))
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
