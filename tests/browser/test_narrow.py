"""What is shown on a phone."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import pytest
from playwright.sync_api import Page, expect

from stepwell import Document, Engine, Trigger
from tests.browser.screenshots import overflow
from tests.browser.shop import Order

GREET = "name: greet\nnodes:\n  - {id: hello, handler: transform, config: {template: WORD}}\n"
Open = Callable[..., Page]


def test_no_page_scrolls_sideways(engine: Engine, open_page: Open) -> None:
    run = engine.start(Order(order_id=3)).wait(20)
    other = engine.start(Order(order_id=4)).wait(20)
    engine.triggers.add(Trigger("hourly", workflow=Order, every="1h", input={"order_id": 1}))
    for word in ("one", "two"):
        engine.save(Document.parse(GREET.replace("WORD", word * 60)))
    page = open_page("/", viewport={"width": 390, "height": 844})
    for address, text in {
        "/": "Running",
        "/runs": "Order",
        f"/runs/{run.id}?node=charge": "the card of order 3 was declined",
        f"/runs/{run.id}?view=table": "charge",
        f"/runs/{run.id}?view=timeline": "charge",
        f"/runs/{run.id}?view=logs": "validating 3",
        f"/runs/{run.id}?view=overview": "ValueError",
        f"/compare/{run.id}/{other.id}?view=nodes": "other output",
        f"/compare/{run.id}/{other.id}?view=times": "charge",
        f"/compare/{run.id}/{other.id}?node=validate": "other output",
        f"/compare/{run.id}/{other.id}?node=validate&outputs=true": "Whole outputs",
        "/workflows/greet?tab=versions": "oneoneone",
        "/workflows": "Order",
        "/workflows/Order?tab=start": "order_id",
        "/triggers": "hourly",
        "/triggers?name=hourly": "hourly",
        "/workers": "alive",
        "/audit-log": "No such entry",
    }.items():
        page.goto(address)
        expect(page.locator("main").get_by_text(text).filter(visible=True).first).to_be_visible()
        assert overflow(page) <= 0, address


def test_dialogs_fit_a_phone_and_messages_leave_its_navigation_free(engine: Engine, open_page: Open) -> None:
    engine.triggers.add(Trigger("hourly", workflow=Order, every="1h", input={"order_id": 1}))
    page = open_page("/triggers?name=hourly", viewport={"width": 390, "height": 844})
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Backfill").click()
    expect(dialog.get_by_role("form", name="Backfill")).to_be_visible()
    assert overflow(page) <= 0
    assert dialog.evaluate("(dialog) => dialog.getBoundingClientRect().right") <= 390
    assert dialog.evaluate("(dialog) => [...dialog.children].every((part) => part.scrollWidth <= part.clientWidth)")
    dialog.get_by_role("button", name="Fire now").click()
    message = page.get_by_text("hourly was fired")
    expect(message).to_be_visible()
    bottom = message.evaluate("(message) => message.getBoundingClientRect().bottom")
    assert bottom <= page.locator("nav[aria-label=Pages]").evaluate("(nav) => nav.getBoundingClientRect().top")
    dialog.get_by_role("button", name="Close").click()
    for key, name in (("Control+k", "Go to"), ("?", "Keys")):
        page.keyboard.press(key)
        expect(page.get_by_role("dialog", name=name)).to_be_visible()
        assert overflow(page) <= 0, name
        page.keyboard.press("Escape")


BOXES = """(log) => [...log.parentElement.firstElementChild.children].map((each) => {
  const { left, right, top, bottom } = (each.querySelector('input') ?? each).getBoundingClientRect();
  return { name: each.innerText || 'search', left, right, top, bottom };
})"""


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("place", ["view=logs", "node=check_fraud&tab=logs&attempt=1"])
def test_the_tools_of_a_log_do_not_overlap(engine: Engine, open_page: Open, place: str, width: int) -> None:
    run = engine.start(Order(order_id=3)).wait(20)
    page = open_page(f"/runs/{run.id}?{place}", viewport={"width": width, "height": 844})
    expect(page.get_by_role("searchbox", name="Search in all lines")).to_be_visible()
    tools = page.locator("[data-log]").evaluate(BOXES)
    assert len(tools) >= 4
    for one, other in combinations(tools, 2):
        is_beside = one["right"] <= other["left"] or other["right"] <= one["left"]
        is_below = one["bottom"] <= other["top"] or other["bottom"] <= one["top"]
        assert is_beside or is_below, (one, other)
    assert tools[0]["right"] - tools[0]["left"] >= 120


def test_a_node_has_the_whole_of_a_phone(engine: Engine, open_page: Open) -> None:
    run = engine.start(Order(order_id=3)).wait(20)
    page = open_page(f"/runs/{run.id}?node=validate&tab=logs", viewport={"width": 390, "height": 844})
    log = page.get_by_role("log")
    expect(log.get_by_text("validating 3")).to_be_visible()
    assert log.evaluate("(log) => log.clientHeight") >= 400
    page.get_by_role("button", name="Close (Esc)").click()
    expect(page.locator("[data-node=charge]")).to_be_visible()
    assert "node=" not in page.url
