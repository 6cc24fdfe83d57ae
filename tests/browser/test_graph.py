"""The graph of a run: what fits, what its cards say, and what lies over it."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from stepwell import Engine, Run
from tests.browser.shop import Order

Open = Callable[..., Page]

OUTSIDE = """(graph) => {
  const frame = graph.getBoundingClientRect();
  return [...graph.querySelectorAll('[data-node]')].filter((node) => {
    const box = node.getBoundingClientRect();
    return box.left < frame.left || box.right > frame.right || box.top < frame.top || box.bottom > frame.bottom;
  }).map((node) => node.dataset.node);
}"""
COVERED = """(graph) => [...graph.querySelectorAll('[data-node]')].filter((node) => {
  const { left, right, top, bottom } = node.getBoundingClientRect();
  return [[left + 4, top + 4], [right - 4, top + 4], [(left + right) / 2, (top + bottom) / 2], [right - 4, bottom - 4]]
    .some(([x, y]) => !node.contains(document.elementFromPoint(x, y)));
}).map((node) => node.dataset.node)"""
ORANGE = """(canvas) => {
  const probe = document.createElement('canvas').getContext('2d');
  probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue('--st-waiting');
  probe.fillRect(0, 0, 1, 1);
  const [red, green, blue] = probe.getImageData(0, 0, 1, 1).data;
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let count = 0;
  for (let at = 0; at < data.length; at += 4)
    if (data[at + 3] > 200 && data[at] === red && data[at + 1] === green && data[at + 2] === blue) count++;
  return count;
}"""
"""Pixels in the colour of the critical path, which is drawn on the canvas."""


@pytest.fixture
def run(engine: Engine) -> Run:
    return engine.start(Order(order_id=4)).wait(timeout=20)


def test_cards_say_how_long_how_often_and_with_what_error(run: Run, open_page: Open) -> None:
    page = open_page(f"/runs/{run.id}")
    expect(page.locator("[data-node=charge]")).to_contain_text("ValueError")
    expect(page.locator("[data-node=check_fraud]")).to_contain_text("2 tries")
    expect(page.locator("[data-node=validate]")).to_contain_text(re.compile(r"\d m?s"))


def test_a_phone_shows_all_of_a_small_graph_and_nothing_over_it(run: Run, open_page: Open) -> None:
    page = open_page(f"/runs/{run.id}", viewport={"width": 390, "height": 844})
    graph = page.get_by_role("application")
    expect(page.locator("[data-node]")).to_have_count(5)
    assert graph.evaluate(OUTSIDE) == []
    assert graph.evaluate(COVERED) == []
    first, last = (page.locator(f"[data-node={name}]").bounding_box() for name in ("validate", "ship"))
    assert first is not None
    assert last is not None
    assert last["y"] > first["y"] + 200  # from above


def test_what_is_selected_stays_in_sight_when_its_panel_opens(run: Run, open_page: Open) -> None:
    page = open_page(f"/runs/{run.id}")
    graph = page.get_by_role("application")
    for name in ("ship", "validate"):
        page.locator(f"[data-node={name}]").click()
        expect(page.get_by_role("complementary", name="Node").get_by_role("heading", name=name)).to_be_visible()
        page.wait_for_function(
            "(name) => { const frame = document.querySelector('[role=application]').getBoundingClientRect();"
            " const box = document.querySelector(`[data-node=${name}]`)?.getBoundingClientRect();"
            " return box && box.left >= frame.left && box.right <= frame.right }",
            arg=name,
        )
        assert name not in graph.evaluate(OUTSIDE)
        page.keyboard.press("Escape")
        expect(page.get_by_role("complementary", name="Node")).to_have_count(0)


def test_the_critical_path_is_drawn_and_in_the_address(run: Run, open_page: Open) -> None:
    page = open_page(f"/runs/{run.id}")
    canvas = page.get_by_role("application").locator("canvas")
    expect(page.locator("[data-node]")).to_have_count(5)
    assert canvas.evaluate(ORANGE) == 0
    page.get_by_role("button", name="Critical path").click()
    page.wait_for_url("**path=true")
    page.wait_for_function(f"() => ({ORANGE})(document.querySelector('[role=application] canvas')) > 50")
    page.get_by_role("button", name="Hide what succeeded").click()
    page.wait_for_url("**hide=true**")
    page.reload()
    expect(page.get_by_role("button", name="Critical path")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("[data-node]")).to_have_count(2)  # charge and ship


def test_a_replay_that_ran_nothing_again_is_no_success(run: Run, open_page: Open) -> None:
    page = open_page(f"/runs/{run.id}")
    page.get_by_role("button", name="More").click()
    page.get_by_role("menuitem", name="Replay…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Replay", exact=True).click()
    expect(dialog.get_by_text("Nothing was run again, so nothing was compared.")).to_be_visible()
    expect(dialog.get_by_text("The same, byte for byte")).to_have_count(0)
