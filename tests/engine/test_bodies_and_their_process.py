"""What bodies do to the process that they share: close its streams, and fork it."""

from __future__ import annotations

import asyncio
import io
import logging
import os
import sys
from typing import Any

import pytest

from stepwell import Builder
from tests.engine.conftest import OpenEngine

WAYS = ("close", "with", "detach", "detach and wrap", "buffer", "original", "descriptor")


def close_stdout(way: str) -> None:
    match way:
        case "close":
            sys.stdout.close()
        case "with":
            with sys.stdout:
                pass
        case "detach":
            sys.stdout.detach()  # type: ignore[union-attr]
        case "detach and wrap":  # which closes it when the wrapper is freed
            sys.stdout = io.TextIOWrapper(sys.stdout.detach(), encoding="utf-8")  # type: ignore[union-attr]
        case "buffer":
            sys.stdout.buffer.close()
        case "original":
            sys.__stdout__.close()  # type: ignore[union-attr]
        case "descriptor":
            os.close(1)


def speak() -> int:
    print("spoken", flush=True)
    logging.getLogger("speaking").warning("logged")
    sys.stdout.write("x" * 10_000 + "\n")
    return os.getpid()


@pytest.mark.parametrize(
    ("way", "isolation"), [*((way, "process") for way in WAYS), ("close", None), ("with", None), ("detach", None)]
)
def test_a_body_that_closes_stdout_breaks_no_later_one(
    open_sqlite: OpenEngine, way: str, isolation: str | None
) -> None:
    options: dict[str, Any] = {} if isolation is None else {"isolation": isolation}
    engine = open_sqlite(max_processes=1)
    w = Builder("closing")
    w.node("before", job=speak, **options)
    w.node("close", job=close_stdout, args={"way": way}, **options)
    w.node("after", job=speak, **options)
    run = engine.run(w, wait=60)
    assert run.output("before") == run.output("after"), "it was another process"
    lines = [line.message for line in run.logs("after")]
    assert [each for each in lines if len(each) < 100] == ["spoken", "logged"]
    assert not sys.stdout.closed


def forks(fails: str) -> int:
    child = os.fork()
    if child == 0:
        if fails == "exits":
            sys.exit(7)
        return 1 // (fails != "raises")
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


async def forks_on_the_loop(fails: str) -> int:
    await asyncio.sleep(0)
    return forks(fails)


@pytest.mark.filterwarnings("ignore:This process")
@pytest.mark.parametrize(("fails", "code"), [("", 0), ("raises", 1), ("exits", 7)])
@pytest.mark.parametrize("body", ["thread", "process", "loop"])
def test_a_process_that_a_body_forks_ends_where_it_returns(
    open_sqlite: OpenEngine, body: str, fails: str, code: int
) -> None:
    options: dict[str, Any] = {"isolation": "process"} if body == "process" else {}
    w = Builder("forking")
    w.node("forks", job=forks_on_the_loop if body == "loop" else forks, args={"fails": fails}, **options)
    w.node("after", job=speak, **options)
    run = open_sqlite(max_processes=1).run(w, wait=60)
    assert run.output("forks") == code
    assert len(run.node("forks").attempts) == 1
