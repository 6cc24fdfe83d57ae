"""The server is killed while a run is open, and started again on the same port and store: the page says so, and goes on."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from stepwell import Builder, Engine
from stepwell.core.store import reader
from tests.browser.shop import wait_for
from tests.engine.waiting import eventually
from tests.servers.fleet import Fleet, Service

STEPS = 8


def step(number: int) -> int:
    wait_for(f"step-{number}")
    return number


@pytest.fixture
def fleet(url: str, tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(url, "", tmp_path)
    yield fleet
    fleet.close()


def serve(fleet: Fleet, port: str = "0") -> tuple[Service, str]:
    """A process that serves and works, and its port."""
    service = fleet.start("serve", "tests.browser.test_restart", "--port", port)
    eventually(lambda: " at http" in service.said, show=lambda: service.said)
    return service, re.findall(r" at http://127\.0\.0\.1:(\d+)", service.said)[0]


def test_a_killed_server_is_said_to_be_away_and_no_event_is_lost(
    url: str, fleet: Fleet, browser: Browser, watch: Callable[[Page], Page], signals: Callable[[str], None]
) -> None:
    first, port = serve(fleet)
    chain = Builder("chain")
    for number in range(STEPS):
        chain.node(f"step_{number}", job=step, args={"number": number})
    with Engine(url, runner=None, jobs=["tests.browser.test_restart"]) as engine:
        run = engine.start(chain)
        page = watch(browser.new_page())
        entries = entries_of(page)
        page.goto(f"http://127.0.0.1:{port}/runs/{run.id}?view=graph")
        is_shown(page, "step_0", "running")
        for number in range(3):
            signals(f"step-{number}")
        is_shown(page, "step_3", "running")

        first.end(signal.SIGKILL)
        expect(page.locator("[data-live=reconnecting]")).to_be_visible()
        is_shown(page, "step_2", "completed")  # what was known stays in sight
        page.get_by_role("radio", name="Table").click()
        expect(page.get_by_text("cannot be reached").first).to_be_visible()
        page.get_by_role("radio", name="Graph").click()

        for number in range(3, STEPS - 1):
            signals(f"step-{number}")
        serve(fleet, port)
        expect(page.locator("[data-live=live]")).to_be_visible()
        for number in range(STEPS - 1):
            is_shown(page, f"step_{number}", "completed")
        is_shown(page, f"step_{STEPS - 1}", "running")
        signals(f"step-{STEPS - 1}")
        is_shown(page, f"step_{STEPS - 1}", "completed")
        assert run.wait(20).status == "COMPLETED"
        row = reader.get_run(engine.parts.store, run.id)
        assert row is not None
        last = row.seq
        eventually(lambda: page.wait_for_timeout(10) or entries[-1:] == [last], show=lambda: entries)
        assert entries == list(range(entries[0], last + 1)), "each entry came once, in order"
        page.close()


def entries_of(page: Page) -> list[int]:
    """The numbers of the entries of the journal, as they come."""
    numbers: list[int] = []
    network = page.context.new_cdp_session(page)
    network.send("Network.enable")
    network.on("Network.eventSourceMessageReceived", lambda message: numbers.append(int(message["eventId"])))
    return numbers


def is_shown(page: Page, name: str, status: str) -> None:
    expect(page.get_by_title(f"{name}: {status}")).to_be_visible()
