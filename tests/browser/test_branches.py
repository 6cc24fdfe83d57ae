"""Nodes that were skipped: faded, with their reason, in every view of a run; and where two runs took different ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, expect

from stepwell import Document, Engine, Run

ORDER = """
name: order
input: {properties: {total: {type: integer}}}
nodes:
  - {id: check, handler: compute, config: {expression: "input.total > 1000"}}
  - {id: review, handler: transform, config: {template: reviewed}, dependencies: [check], when: "{{ check.result }}"}
  - {id: sign, handler: transform, config: {template: signed}, dependencies: [review]}
  - {id: ship, handler: transform, config: {template: "{{ 'x' * 300000 }}"}, dependencies: [check, sign]}
"""


def ended(engine: Engine, total: int) -> Run:
    engine.save(Document.parse(ORDER))
    return engine.start("order", input={"total": total}).wait(30)


def test_a_skipped_node_is_faded_and_says_why(engine: Engine, open_page: Callable[..., Page]) -> None:
    page = open_page(f"/runs/{ended(engine, 7).id}")
    review, sign = page.locator("[data-node=review]"), page.locator("[data-node=sign]")
    expect(review).to_have_attribute("data-status", "SKIPPED")
    expect(review).to_contain_text("condition did not hold")
    expect(review).to_have_attribute("title", "review: skipped, condition did not hold\nRuns if check.result")
    expect(sign).to_contain_text("all parents were skipped")
    for node, style in ((review, "dashed"), (sign, "dashed"), (page.locator("[data-node=ship]"), "solid")):
        expect(node).to_have_css("border-top-style", style)


def test_the_panel_of_a_skipped_node_has_its_condition_and_decides_again(
    engine: Engine, open_page: Callable[..., Page]
) -> None:
    page = open_page(f"/runs/{ended(engine, 7).id}?node=review&tab=config")
    panel = page.get_by_role("complementary", name="Node")
    expect(panel).to_contain_text("condition did not hold")
    expect(panel.get_by_role("definition").filter(has_text="check.result").first).to_be_visible()
    panel.get_by_role("button", name="Decide again").click()
    expect(page.get_by_role("dialog")).to_contain_text("review")
    page.keyboard.press("Escape")
    page.locator("[data-node=sign]").click()
    expect(panel.get_by_role("heading", name="sign")).to_be_visible()
    expect(panel.get_by_role("button", name="Decide again")).to_have_count(0)


def test_the_table_and_the_timeline_call_a_skip_a_skip(engine: Engine, open_page: Callable[..., Page]) -> None:
    run = ended(engine, 7)
    page = open_page(f"/runs/{run.id}?view=table")
    row = page.get_by_role("row").filter(has_text="review")
    expect(row).to_contain_text("condition did not hold")
    page.keyboard.press("2")
    expect(page.get_by_role("img", name="Legend")).to_contain_text("skipped")
    expect(page.get_by_role("img", name="Legend")).not_to_contain_text("released")


def test_the_graph_of_a_workflow_names_conditions(engine: Engine, open_page: Callable[..., Page]) -> None:
    ended(engine, 7)
    page = open_page("/workflows/order")
    expect(page.locator("[data-node=review]")).to_contain_text("if check.result")


def test_two_runs_are_one_graph_coloured_by_difference(engine: Engine, open_page: Callable[..., Page]) -> None:
    first, second = ended(engine, 7), ended(engine, 5_000)
    page = open_page(f"/compare/{first.id}/{second.id}")

    def look(node: str) -> Any:
        return page.locator(f"[data-node={node}]")

    expect(look("review")).to_have_attribute("data-status", "DIFFERS")
    expect(look("review")).to_contain_text("≠")
    expect(look("review")).to_contain_text("skipped → completed")
    expect(look("check")).to_contain_text("other output")
    expect(look("ship")).to_have_attribute("data-status", "SAME")
    expect(page.get_by_role("img", name="Legend")).to_contain_text("only in the second run")


def test_large_outputs_are_compared_side_by_side(engine: Engine, open_page: Callable[..., Page]) -> None:
    first, second = ended(engine, 7), ended(engine, 5_000)
    page = open_page(f"/compare/{first.id}/{second.id}?node=ship&outputs=true")
    for side in ("First run", "Second run"):
        section = page.get_by_role("region", name=side)
        section.get_by_role("button", name="Load its 301 kB").click()
        expect(section).to_contain_text("xxxxxxxx")
