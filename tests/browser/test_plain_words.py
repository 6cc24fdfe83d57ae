"""What pages count and offer is what it says: numbers of workers and nodes, orders, keys, and the past."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from stepwell import Builder, Document, Engine
from tests.browser.shop import Order
from tests.server.running import running


def test_a_list_does_not_count_what_failed_upstream_as_completed(
    engine: Engine, open_page: Callable[..., Page]
) -> None:
    engine.start(Order(order_id=1)).wait(30)
    page = open_page("/runs")
    expect(page.get_by_role("img", name="4 ended, 1 failed")).to_be_visible()
    page.goto("/")
    expect(page.get_by_role("img", name="4 ended, 1 failed")).to_be_visible()


def test_the_list_of_workflows_counts_their_workers(engine: Engine, open_page: Callable[..., Page]) -> None:
    page = open_page("/workflows")
    row = page.get_by_role("row").filter(has_text="Order")
    expect(row.get_by_role("gridcell").nth(3)).to_have_text("1")


def test_orders_of_the_list_say_by_what(engine: Engine, open_page: Callable[..., Page]) -> None:
    page = open_page("/runs")
    options = page.get_by_role("combobox", name="Order").locator("option")
    expect(options).to_have_text(["Last created", "Last ended", "Longest"])


def test_the_keys_of_the_graph_are_in_the_help(open_page: Callable[..., Page]) -> None:
    page = open_page("/runs")
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Along the edges")


def test_the_panel_offers_no_retry_while_the_past_is_looked_at(engine: Engine, open_page: Callable[..., Page]) -> None:
    run = engine.start(Order(order_id=2)).wait(30)
    page = open_page(f"/runs/{run.id}?node=charge")
    retry = page.get_by_role("complementary", name="Node").get_by_role("button", name="Retry…")
    expect(retry).to_be_visible()
    page.goto(f"/runs/{run.id}?node=charge&seq=6")
    expect(page.get_by_role("complementary", name="Node")).to_contain_text("the card of order 2 was declined")
    expect(retry).to_have_count(0)


def test_a_form_asks_first_for_what_must_be_given_and_last_for_tags(
    engine: Engine, open_page: Callable[..., Page]
) -> None:
    fields = {"currency": {"default": "EUR", "type": "string"}, "day": {"type": "string"}}
    node = {"id": "load", "handler": "transform", "config": {"template": "{{ input.day }}"}}
    document = {"name": "report", "input": {"properties": fields, "required": ["day"]}, "nodes": [node]}
    engine.save(Document.parse(json.dumps(document)))
    page = open_page("/workflows/report?tab=start")
    expect(page.locator("main label").filter(visible=True)).to_contain_text(["day", "currency", "Tags"])


def test_long_names_that_begin_alike_can_be_told_apart(engine: Engine, open_page: Callable[..., Page]) -> None:
    builder = Builder("genes")
    for end in ("MARKDUPLICATES", "SAMTOOLS_STATS"):
        builder.node(f"NFCORE_SAREK.BAM_MARKDUPLICATES.PICARD.{end}", job="tests.browser.shop:total")
    page = open_page(f"/runs/{engine.start(builder).id}")
    for end in ("ARKDUPLICATES", "AMTOOLS_STATS"):
        shown = page.locator("[data-node]").get_by_text(end, exact=True)
        expect(shown).to_be_visible()
        assert shown.evaluate(
            "span => span.getBoundingClientRect().right < span.closest('button').getBoundingClientRect().right"
        )


def test_a_run_that_has_not_started_does_not_say_so(tmp_path: Path, open_page: Callable[..., Page]) -> None:
    url = f"sqlite:///{tmp_path}/idle.db"
    builder = Builder("labels")
    builder.node("print_labels", job="tests.browser.shop:total")
    with Engine(url, runner=None) as engine, running(url) as idle:
        page = open_page(f"/runs/{engine.start(builder).id}", base_url=idle.url)
        head = page.get_by_role("main").locator("header")
        expect(head).to_contain_text("created")
        expect(head).not_to_contain_text("started")
