"""What failed, and why: on the page of a run, in its table, in lists, and nowhere in a way that leads to nothing."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from stepwell import Builder, Engine, Run
from tests.browser.shop import Order, refuse_nine_or_square, square, total
from tests.browser.test_run_page import squares

Open = Callable[..., Page]
DECLINED = "ValueError: the card of order 4 was declined"


def two_kinds(engine: Engine) -> Run:
    """Parts of a fan that fail with errors of two classes."""
    builder = Builder("kinds", on_failure="finish")
    builder.fan_out(
        range(5), job=refuse_nine_or_square, name=lambda i: f"part_{i + 9}", args=lambda i: {"number": i + 9}
    )
    return engine.start(builder).wait(timeout=30)


def test_what_was_raised_is_said_first_and_unfolded(engine: Engine, open_page: Open) -> None:
    run = engine.start(Order(order_id=4)).wait(timeout=20)
    page = open_page(f"/runs/{run.id}?node=ship")
    banner = page.get_by_role("region", name="Why")
    expect(banner.get_by_text(DECLINED)).to_be_visible()
    expect(banner.get_by_text("run.retry()")).to_be_hidden()
    panel = page.get_by_role("complementary", name="Node")
    expect(panel.get_by_text("ship did not run: it depends on charge")).to_be_visible()
    text = panel.get_by_role("tabpanel").inner_text()
    assert text.index(DECLINED) < text.index("did not run")
    assert text.count("was declined") == 1
    assert "`" not in text
    banner.get_by_role("button", name="charge").click()
    expect(panel.get_by_role("heading", name="charge")).to_be_visible()
    panel.get_by_title("Its traceback").click()
    expect(panel.get_by_role("region", name="Traceback")).to_be_visible()


def test_lists_name_the_class_of_the_error_and_lead_to_runs_with_it(engine: Engine, open_page: Open) -> None:
    engine.start(Order(order_id=4)).wait(timeout=20)
    squares(engine)
    page = open_page("/")
    expect(page.get_by_role("link").filter(has_text="ValueError")).to_be_visible()
    page.goto("/runs")
    expect(page.get_by_role("row")).to_have_count(3)
    page.get_by_role("link", name="KeyError").click()
    expect(page.get_by_role("row")).to_have_count(2)
    expect(page.get_by_role("row").nth(1)).to_contain_text("squares")


def test_the_table_begins_with_what_failed_and_says_with_what(engine: Engine, open_page: Open) -> None:
    run = squares(engine)
    page = open_page(f"/runs/{run.id}?view=table")
    grid = page.get_by_role("grid", name="Nodes")
    expect(grid.get_by_role("row").nth(1)).to_contain_text("KeyError: 'there is no 13'")
    expect(grid.get_by_role("row").nth(5)).to_be_visible()
    names = [row.get_by_role("gridcell").nth(1).inner_text() for row in grid.get_by_role("row").all()[1:6]]
    assert names == ["square_13", "square_0", "square_1", "square_2", "square_3"]
    expect(grid.get_by_role("row").nth(1)).to_contain_text(re.compile(r"\d m?s"))
    page.get_by_role("searchbox", name="Find a node").fill("square_2")
    expect(grid.get_by_role("row")).to_have_count(12)
    page.reload()
    expect(grid.get_by_role("row")).to_have_count(12)


def test_a_kind_of_error_names_its_nodes_and_leads_to_them(engine: Engine, open_page: Open) -> None:
    run = two_kinds(engine)
    page = open_page(f"/runs/{run.id}")
    page.get_by_role("region", name="Why").get_by_role("button", name="and 1 other node").click()
    expect(page.get_by_role("grid", name="Nodes").get_by_role("row").nth(2)).to_contain_text("failed")
    page.get_by_role("radio", name="Overview").click()
    expect(page.get_by_text("2 nodes, 2 kinds of error")).to_be_visible()
    expect(page.get_by_role("button", name="part_13")).to_be_visible()
    page.get_by_role("listitem").filter(has_text="PermissionError").get_by_title(
        "Show these nodes in the table"
    ).click()
    rows = page.get_by_role("grid", name="Nodes").get_by_role("row")
    expect(rows).to_have_count(2)
    expect(rows.nth(1)).to_contain_text("part_9")
    page.get_by_role("button", name="failed with PermissionError").click()
    expect(rows).to_have_count(6)


def test_one_node_with_one_error_is_one(engine: Engine, open_page: Open) -> None:
    page = open_page(f"/runs/{squares(engine).id}?view=overview")
    expect(page.get_by_text("1 node, 1 kind of error")).to_be_visible()


def test_a_run_of_a_graph_that_was_built_has_no_dead_links(engine: Engine, open_page: Open) -> None:
    builder = Builder("built")
    builder.node("total", job=total)
    run = engine.start(builder).wait(timeout=20)
    page = open_page(f"/runs/{run.id}")
    page.get_by_role("button", name="More").click()
    again = page.get_by_role("menuitem", name="Start again: from the program that built it")
    expect(again).to_be_disabled()
    page.keyboard.press("Escape")
    page.get_by_role("link", name="built").click()
    page.wait_for_url("**/runs?workflow=built")
    expect(page.get_by_role("row").nth(1)).to_contain_text(run.id)
    page.goto("/workflows/built")
    page.get_by_role("link", name="Its runs").click()
    page.wait_for_url("**/runs?workflow=built")


def test_of_a_run_that_paused_after_a_failure_retry_is_the_first_choice(engine: Engine, open_page: Open) -> None:
    builder = Builder("pausing", on_failure="pause")
    builder.node("square", job=square, args={"number": 13})
    run = engine.start(builder)
    page = open_page(f"/runs/{run.id}")
    expect(page.get_by_title("Run again what failed, and go on")).to_be_visible()
    expect(page.get_by_title("Go on without what failed")).to_be_visible()
