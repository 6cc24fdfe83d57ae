"""What the pages may cost, as counts that are the same on every machine; `python -m bench ui` has the times.

Measured on 19 November 2026: the UI 1,374 kB; the first load 186 kB of code, 21 requests and 287 kB with fonts and answers;
a run of 1,000 nodes opens with 4 requests to the API, 88 kB and 909 elements; 9 commits in the busiest second of a fan of 500.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from typing import NamedTuple

from playwright.sync_api import Page, expect

from stepwell import Builder, Engine
from stepwell.core.store import reader
from stepwell.server.web_ui import BUILT
from tests.browser.shop import Order, hold, nap, square
from tests.engine.waiting import eventually

Open = Callable[..., Page]
KILOBYTE = 1_000
COMMITS = """window.commits = [];
window.__REACT_DEVTOOLS_GLOBAL_HOOK__ = {
  supportsFiber: true, inject: () => 1, onCommitFiberUnmount() {}, onPostCommitFiberRoot() {},
  onCommitFiberRoot: () => window.commits.push(performance.now()),
};"""
"""Production builds of React report each commit to this hook and have no other way to."""


class Requests(NamedTuple):
    """What Chromium really asked for, with an empty cache."""

    sizes: dict[str, int]
    """Bytes as they were sent, by path."""

    def of(self, kind: str) -> dict[str, int]:
        return {path: size for path, size in self.sizes.items() if path.startswith(kind)}


def recorded(page: Page) -> Requests:
    network = page.context.new_cdp_session(page)
    network.send("Network.enable")
    paths: dict[str, str] = {}
    sizes: dict[str, int] = {}
    network.on("Network.requestWillBeSent", lambda event: paths.update({event["requestId"]: event["request"]["url"]}))
    network.on(
        "Network.loadingFinished",
        lambda event: sizes.update({paths[event["requestId"]].split("/", 3)[3]: event["encodedDataLength"]}),
    )
    return Requests(sizes)


def test_the_built_ui_is_small() -> None:
    files = [path for path in BUILT.rglob("*") if path.is_file()]
    whole = sum(path.stat().st_size for path in files)
    page = (BUILT / "index.html").read_text()
    first = {BUILT / name for name in re.findall(r'(?:src|href)="\./([^"]+)"', page)} | {BUILT / "index.html"}
    loaded = sum(len(gzip.compress(path.read_bytes())) for path in first)
    assert len(first) >= 3
    assert whole <= 3_000 * KILOBYTE
    assert loaded <= 350 * KILOBYTE


def test_the_first_load_asks_for_little(engine: Engine, open_page: Open) -> None:
    engine.start(Order(order_id=3)).wait(20)
    page = open_page("about:blank")
    requests = recorded(page)
    page.goto("/")
    expect(page.get_by_text("Needs attention")).to_be_visible()
    expect(page.get_by_role("link", name="Order").first).to_be_visible()
    page.evaluate("document.fonts.ready")
    loaded = sum(requests.sizes.values())
    assert requests.of("assets/")
    assert loaded <= 350 * KILOBYTE
    assert len(requests.sizes) <= 25


def test_a_run_of_a_thousand_nodes_opens_with_few_requests(engine: Engine, open_page: Open) -> None:
    wide = Builder("wide")
    for place in range(25):
        for number in range(40):
            before = [f"step_{place}_of_{number - 1}"] if number else []
            wide.node(f"step_{place}_of_{number}", job=square, args={"number": 1}, depends_on=before)
    run = engine.start(wide).wait(60)
    page = open_page("about:blank")
    requests = recorded(page)
    page.goto(f"/runs/{run.id}")
    expect(page.locator("[data-node], [data-group]").first).to_be_visible()
    expect(page.locator("[data-live=live]")).to_be_visible()
    api = requests.of("api/")
    assert len(api) <= 8
    assert sum(api.values()) <= 100 * KILOBYTE
    assert page.locator("*").count() <= 1_500
    assert page.locator("html").get_attribute("data-layouts") == "1"


def test_a_fan_of_500_loses_no_event_and_renders_ten_times_a_second_at_most(
    engine: Engine, open_page: Open, signals: Callable[[str], None]
) -> None:
    fan = Builder("fan")
    parts = fan.fan_out(range(500), job=nap, name=lambda number: f"nap_{number}")
    fan.node("gate", job=hold, depends_on=parts)
    run = engine.start(fan)
    page = open_page("about:blank")
    page.add_init_script(COMMITS)
    entries: list[int] = []
    network = page.context.new_cdp_session(page)
    network.send("Network.enable")
    network.on("Network.eventSourceMessageReceived", lambda message: entries.append(int(message["eventId"])))
    page.goto(f"/runs/{run.id}")
    expect(page.locator("[data-live=live]")).to_be_visible()
    page.evaluate("window.commits.length = 0")
    signals("nap-over")
    expect(page.get_by_text("500 of 501")).to_be_visible()
    commits = page.evaluate("window.commits")
    signals("gate-open")
    run.wait(60)
    expect(page.get_by_text("501 of 501")).to_be_visible()
    row = reader.get_run(engine.parts.store, run.id)
    assert row is not None
    eventually(lambda: page.wait_for_timeout(20) or entries[-1:] == [row.seq], show=lambda: entries[-3:])
    assert entries == list(range(entries[0], row.seq + 1))
    assert row.seq - entries[0] >= 900
    busiest = max(sum(at <= other < at + 1_000 for other in commits) for at in commits)
    assert busiest <= 10
    assert page.locator("html").get_attribute("data-layouts") == "1"
    group = page.locator("[data-group]").first.get_attribute("data-group")
    closed = page.locator(f'[data-group="{group}"][aria-expanded=false]')
    for _ in range(2):  # the second time, its layout is known
        closed.click()
        expect(closed).to_have_count(0)
        expect(page.locator("html")).to_have_attribute("data-layouts", "2")
        page.evaluate("history.pushState({}, '', location.pathname)")
    assert page.locator("*").count() <= 1_500
