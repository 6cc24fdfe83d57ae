"""Who waits for a run that others work on is woken by a hint: looking now and then is only for hints that are lost."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Literal

import pytest

from stepwell import Builder, Engine, Run
from stepwell.define.options import OnFailure
from stepwell.engine import waiting
from stepwell.engine.worker import housekeeper, timetable
from tests.engine.waiting import eventually

RELEASED = threading.Event()


def hold() -> None:
    assert RELEASED.wait(60)


def fail() -> None:
    hold()
    raise ValueError("not today")


def release(run: Run) -> None:
    RELEASED.set()


def cancel(run: Run) -> None:
    run.cancel()
    RELEASED.set()


@pytest.fixture
def only_hints(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nobody looks by itself before the test is over."""
    monkeypatch.setattr(waiting, "LOOK_EVERY", 60.0)
    monkeypatch.setattr(housekeeper, "HINT_SECONDS", 60.0)
    monkeypatch.setattr(timetable, "WATCH_LATEST", 60_000_000)
    RELEASED.clear()
    yield
    RELEASED.set()


OUTCOMES: list[tuple[Callable[[], None], OnFailure, Callable[[Run], None], str]] = [
    (hold, "fail_fast", release, "COMPLETED"),
    (fail, "fail_fast", release, "FAILED"),
    (fail, "finish", release, "FAILED"),
    (fail, "pause", release, "PAUSED"),
    (hold, "fail_fast", cancel, "CANCELLED"),
]


@pytest.mark.usefixtures("only_hints")
@pytest.mark.parametrize("runner", [None, "local"])
def test_a_hint_wakes_who_waits_for_what_others_do(server_url: str, runner: Literal["local"] | None) -> None:
    with Engine(server_url) as works, Engine(server_url, runner=runner, queues=["other"]) as waits:
        for body, on_failure, do, status in OUTCOMES:
            RELEASED.clear()
            w = Builder("held", on_failure=on_failure)
            w.node("held", job=body)
            run = works.start(w)
            eventually(lambda: run.node("held").status == "RUNNING")  # noqa: B023
            seen: list[str] = []
            thread = threading.Thread(target=lambda: seen.append(waits.get(run.id).wait(60).status))  # noqa: B023
            thread.start()
            eventually(waits.parts.waiting._watch.runs)
            time.sleep(0.02)  # it waits already, or the hint comes first: both must wake it
            do(run)
            thread.join(10)
            assert seen == [status]


@pytest.mark.usefixtures("only_hints")
def test_a_hint_wakes_coroutines_too(server_url: str) -> None:
    w = Builder("held")
    w.node("held", job=hold)

    async def wait(run_id: str) -> str:
        async with Engine(server_url, runner=None) as waits:
            asyncio.get_running_loop().call_later(0.2, RELEASED.set)
            found = await waits.get(run_id)
            return str(await (await asyncio.wait_for(found.wait(60), 10)).status)

    with Engine(server_url) as works:
        assert asyncio.run(wait(works.start(w).id)) == "COMPLETED"
