"""Bodies and jobs that tests of effects find by address, in this process or in another."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from time import time as wall_clock
from typing import Any

from stepwell import Context, RetryLater, effect
from stepwell.errors import Stopped
from tests.engine.ledger import note


def answer(ledger: str, value: Any) -> Any:
    """An outside service: notes that it was called."""
    note(ledger, "called", value)
    return {"value": value}


async def answer_later(ledger: str, value: Any) -> Any:
    note(ledger, "called", value)
    await asyncio.sleep(0)
    return {"value": value}


def refuse(message: str) -> None:
    raise ConnectionError(message)


def ask(ledger: str, values: list[Any], ctx: Context, durable: bool = False) -> list[Any]:
    return [ctx.effect("ask", answer, ledger, value, durable=durable) for value in values]


async def ask_side_by_side(ledger: str, values: list[Any], ctx: Context, durable: bool = False) -> list[Any]:
    asked = [ctx.effect("ask", answer_later, ledger, value, durable=durable) for value in values]
    return list(await asyncio.gather(*asked))


def ask_in_threads(ledger: str, values: list[Any], ctx: Context) -> list[Any]:
    def one(value: Any) -> Any:
        return ask_decorated(ledger, value)

    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(contextvars.copy_context().run, one, value) for value in values]
        return [each.result() for each in asked]


@effect("decorated")
def ask_decorated(ledger: str, value: Any) -> Any:
    return answer(ledger, value)


@effect("decorated later")
async def ask_decorated_later(ledger: str, value: Any) -> Any:
    return await answer_later(ledger, value)


@effect("with ctx", request=lambda ledger, value: {"value": str(value)})
def ask_with_ctx(ctx: Context | None, ledger: str, value: Any) -> Any:
    return answer(ledger, str(value))


def use_decorated(ledger: str, ctx: Context) -> list[Any]:
    found = [ask_decorated(ledger, 1), ask_decorated(value=1, ledger=ledger)]
    thread = threading.Thread(target=lambda: found.append(ask_with_ctx(ctx, ledger, {2})))
    thread.start()
    thread.join()
    return found


async def use_decorated_later(ledger: str) -> Any:
    return await ask_decorated_later(ledger, 1)


def ask_and_fail(ledger: str, ctx: Context) -> None:
    ctx.effect("ask", answer, ledger, 1)
    ctx.effect("refuse", refuse, "no line")


def fail_then_answer(ledger: str, ctx: Context) -> Any:
    """Asks durably, fails in its first two attempts, and then is done."""
    first = ctx.effect("charge", answer, ledger, "charge", durable=True)
    if ctx.attempt == 1:
        raise RetryLater(0)
    second = ctx.effect("ship", answer, ledger, "ship", durable=True)
    if ctx.attempt == 2:
        raise RetryLater(0)
    return [ctx.attempt, first, second]


async def fail_then_answer_on_the_loop(ledger: str, ctx: Context) -> Any:
    first = await ctx.effect("charge", answer_later, ledger, "charge", durable=True)
    if ctx.attempt == 1:
        raise RetryLater(0)
    return [ctx.attempt, first]


def charge_and_wait(ledger: str, ctx: Context) -> Any:
    """Charges durably and asks once more, not durably; then its worker is killed, in its first attempt."""
    charged = ctx.effect("charge", answer, ledger, "charge", durable=True)
    ctx.effect("ask", answer, ledger, "ask")
    note(ledger, "waiting", os.getpid())
    while ctx.attempt == 1:
        time.sleep(60)
    return charged


def charge_and_die(ledger: str, ctx: Context) -> Any:
    """The same in a process of its own, which kills itself."""
    charged = ctx.effect("charge", answer, ledger, "charge", durable=True)
    ctx.effect("ask", answer, ledger, "ask")
    ctx.now()
    if ctx.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return charged


def draw(ctx: Context) -> dict[str, Any]:
    """Everything that comes from the seed."""
    return {
        "seed": ctx.seed,
        "order_key": str(ctx.order_key),
        "random": [ctx.random.random(), ctx.random.randint(1, 1_000_000)],
        "uuids": [str(ctx.uuid()), str(ctx.uuid())],
        "attempt": ctx.attempt,
    }


def draw_twice(ledger: str, ctx: Context) -> dict[str, Any]:
    drawn = draw(ctx)
    note(ledger, drawn["random"], drawn["uuids"])
    if ctx.attempt == 1:
        raise RetryLater(0)
    return drawn


def tell_the_time(ctx: Context) -> list[str]:
    return [ctx.now().isoformat() for _ in range(3)]


def large_answers(size: int, times: int, ctx: Context) -> int:
    return sum(len(ctx.effect("large", lambda number: "x" * size, number)) for number in range(times))


def many_effects(count: int, ctx: Context) -> None:
    for number in range(count):
        ctx.effect("one", abs, number)


def nested(ledger: str, ctx: Context) -> Any:
    def outer() -> Any:
        return [ask_decorated(ledger, 1), ctx.effect("inner", answer, ledger, 2)]

    return ctx.effect("outer", outer)


def ask_what_is_no_json(ctx: Context) -> Any:
    return ctx.effect("odd", str, {1, 2})


def ask_with_request(ctx: Context) -> Any:
    return ctx.effect("odd", sorted, {2, 1}, request={"numbers": 2})


def answer_no_json(ctx: Context) -> Any:
    return ctx.effect("odd", lambda: {1, 2})


def tuples(ctx: Context) -> str:
    return repr(ctx.effect("pair", lambda: {"pair": (1, 2)}))


def tell_secret(secret: str, ctx: Context) -> str:
    told = ctx.effect("tell", lambda token: {"token": token, secret: [secret], "number": 12345678}, secret)
    return str(told["token"])


def read_clock_unrecorded() -> float:
    return wall_clock()


def read_clock_and_swallow() -> str:
    try:
        wall_clock()
    except Exception:
        return "went on"
    return "not refused"


def read_clock_in_an_effect(ctx: Context) -> float:
    return float(ctx.effect("clock", wall_clock))


async def read_date_on_the_loop() -> str:
    await asyncio.sleep(0)

    async def inner() -> str:
        return datetime.now().isoformat()

    return (await asyncio.gather(inner()))[0]


def behave(ctx: Context, folder: str) -> list[Any]:
    """Everything a guarded body may do."""
    print("printed")
    Path(folder, "file").write_text("text")
    return [ctx.now().year > 2000, ctx.random.random() < 1, str(ctx.uuid()), ctx.effect("clock", wall_clock) > 0]


def leave_open(ctx: Context) -> str:
    """Ends while a thread of its own still asks."""
    begun = threading.Event()

    def slow() -> None:
        begun.set()
        threading.Event().wait(2)

    threading.Thread(target=ctx.effect, args=("slow", slow), daemon=True).start()
    begun.wait(30)
    return "left"


BEGUN, ANSWER, OVER = threading.Event(), threading.Event(), threading.Event()
"""Of the thread that a body leaves behind, in the process that both of the next two run in."""


def leave_a_thread_that_pays(ctx: Context) -> None:
    """Its thread is answered when another body runs in this process."""

    def slow() -> str:
        BEGUN.set()
        ANSWER.wait(30)
        return "of another run"

    def ask() -> None:
        with contextlib.suppress(Stopped):
            ctx.effect("charge", slow, durable=True, request=7)
        OVER.set()

    threading.Thread(target=ask, daemon=True).start()
    BEGUN.wait(30)


def pay_at_last(ctx: Context) -> str:
    if ctx.attempt == 1:
        ANSWER.set()
        assert OVER.wait(30)
        raise ConnectionError("once more")
    paid: str = ctx.effect("charge", str, "its own", durable=True, request=7)
    return paid


async def leave_a_lambda_open(ctx: Context) -> int:
    asyncio.ensure_future(ctx.effect("slow", lambda seconds: asyncio.sleep(seconds), 60))  # noqa: PLW0108, RUF006
    await asyncio.sleep(0.05)
    return 1
