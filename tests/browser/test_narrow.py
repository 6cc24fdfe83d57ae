"""What is shown on a phone."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from stepwell import Engine
from tests.browser.screenshots import overflow
from tests.browser.shop import Order

Open = Callable[..., Page]


def test_no_page_scrolls_sideways(engine: Engine, open_page: Open) -> None:
    run = engine.start(Order(order_id=3)).wait(20)
    page = open_page("/", viewport={"width": 390, "height": 844})
    for address, text in {
        "/": "Running",
        "/runs": "Order",
        f"/runs/{run.id}?node=charge": "the card of order 3 was declined",
        f"/runs/{run.id}?view=table": "charge",
        "/workflows": "Order",
        "/workflows/Order?tab=start": "order_id",
        "/triggers": "No triggers",
        "/workers": "alive",
        "/audit-log": "No such entry",
    }.items():
        page.goto(address)
        expect(page.get_by_role("main").get_by_text(text).filter(visible=True).first).to_be_visible()
        assert overflow(page) <= 0, address
