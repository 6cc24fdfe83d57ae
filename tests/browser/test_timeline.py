"""The timeline of a run: an axis that can be read, groups, and bars that lead to their attempts."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from stepwell import Engine
from tests.browser.shop import Order
from tests.browser.test_run_page import squares

Open = Callable[..., Page]


def test_a_bar_opens_its_attempt(engine: Engine, open_page: Open) -> None:
    run = engine.start(Order(order_id=4)).wait(timeout=20)
    page = open_page(f"/runs/{run.id}?view=timeline")
    page.get_by_role("button", name=re.compile("^check_fraud, attempt 1: failed")).click()
    panel = page.get_by_role("complementary", name="Node")
    expect(panel.get_by_role("button", name=re.compile("^Attempt 1"))).to_have_attribute("aria-expanded", "true")
    expect(panel.get_by_text("ConnectionError: the fraud service hung up", exact=True)).to_be_visible()
    assert "attempt=1" in page.url


def test_a_fan_is_one_row_that_opens(engine: Engine, open_page: Open) -> None:
    run = squares(engine)
    page = open_page(f"/runs/{run.id}?view=timeline")
    rows = page.get_by_role("list", name="Timeline").get_by_role("listitem")
    expect(rows).to_have_count(1)  # `total` was never attempted
    expect(rows.first).to_contain_text("✗ 1")
    expect(page.get_by_text(re.compile(r"^\d+ nodes, \d+ attempts within"))).to_be_visible()
    rows.first.get_by_role("button", expanded=False).click()
    expect(rows.nth(2)).to_contain_text("square_")
    page.reload()
    expect(rows.nth(2)).to_contain_text("square_")
    rows.first.get_by_role("button", expanded=True).click()
    expect(rows).to_have_count(1)


def test_the_axis_has_times_and_the_legend_what_is_drawn(engine: Engine, open_page: Open) -> None:
    run = engine.start(Order(order_id=4)).wait(timeout=20)
    page = open_page(f"/runs/{run.id}?view=timeline&order=longest")
    expect(page.get_by_role("radio", name="Longest")).to_be_checked()
    legend = page.get_by_role("img", name="Legend")
    for word in ("waited", "completed", "failed"):
        expect(legend).to_contain_text(word)
    expect(legend).not_to_contain_text("running")
    axis = page.get_by_role("img", name=re.compile("^Time since the run was asked for"))
    assert len(re.findall(r"\d+ (?:ms|s)", axis.inner_text())) >= 3
