"""The pages below a path, as a proxy of a company serves them."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from stepwell import Engine
from tests.browser.shop import Order
from tests.server.running import running

ROOT = "/tools/stepwell"


def test_pages_links_streams_and_the_layout_work_below_a_path(
    url: str, engine: Engine, open_page: Callable[..., Page]
) -> None:
    run = engine.start(Order(order_id=4)).wait(timeout=20)
    with running(url, root=ROOT) as below:
        page = open_page(f"{ROOT}/runs", base_url=below.url)
        page.get_by_role("link", name="Order").first.click()
        page.wait_for_url(f"**{ROOT}/runs/{run.id}")
        expect(page.locator("[data-node=charge]")).to_be_visible()  # its worker was loaded
        expect(page.locator("[data-live=live]")).to_be_visible()
        page.reload()
        expect(page.locator("[data-node=charge]")).to_be_visible()
        page.keyboard.press("g")
        page.keyboard.press("w")
        page.wait_for_url(f"**{ROOT}/workflows")
        expect(page.get_by_role("heading", name="Workflows")).to_be_visible()
