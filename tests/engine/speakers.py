"""Bodies that say something."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from pathlib import Path

import stepwell
from stepwell import Context
from tests.engine.ledger import note

log = logging.getLogger("shop.orders")
TOKEN = "s3cret-t0ken"


def speak(word: str = "") -> None:
    print("printed", word)
    print("complaint", word, file=sys.stderr)
    log.warning("logged %s", word)
    log.debug("too quiet to be heard")
    sys.stdout.write("no end of line")


async def take_turns(word: str, times: int) -> None:
    for number in range(times):
        print(word, number)
        await asyncio.sleep(0)
        log.error("%s logged %d", word, number)
        await asyncio.to_thread(print, word, "in a thread", number)
        await asyncio.create_task(in_a_task(word, number))


async def in_a_task(word: str, number: int) -> None:
    await asyncio.sleep(0)
    print(word, "in a task", number)


def fail_loudly() -> None:
    try:
        raise ValueError("broken")
    except ValueError:
        log.exception("it is")
        raise


def tell_secrets() -> None:
    stepwell.secret(TOKEN)
    print("printed", TOKEN)
    log.warning("logged %s", TOKEN)
    raise ValueError(f"raised {TOKEN}") from KeyError(TOKEN)


def tell_a_secret_of_another(value: str) -> None:
    print("printed", value)
    raise ValueError(value)


def chatter(lines: int) -> int:
    for number in range(lines):
        print("line", number)
    return lines


def chatter_by_logging(lines: int) -> int:
    for number in range(lines):
        log.warning("line %d", number)
    return lines


def speak_and_wait(go: str, ctx: Context) -> None:
    """Says something, and ends when the file `go` is there."""
    print("begun")
    ctx.progress(1, 4, "quarters")
    until = time.monotonic() + 60
    while not Path(go).exists() and time.monotonic() < until:
        time.sleep(0.005)
    print("ended")
    ctx.progress(4, 4)


def speak_for_ever(ledger: str) -> None:
    note(ledger, os.getpid())
    number = 0
    while True:
        print("line", number, time.time())
        number += 1
        time.sleep(0.01)


def last_words() -> None:
    print("before the crash")
    os._exit(3)


def count(times: int, ctx: Context) -> float:
    began = time.perf_counter()
    for number in range(times):
        ctx.progress(number + 1, times)
    return time.perf_counter() - began
