"""Whoever types fast on a slow machine loses no letter, and goes where they wrote."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Route, expect

from stepwell import Builder, Engine
from tests.browser.shop import Order, total

Open = Callable[..., Page]
PUT_OFF = """(() => {
  const wait = () => window.isBusy ? 400 : 0;
  const later = window.setTimeout;
  const post = MessagePort.prototype.postMessage;
  window.setTimeout = (action, time = 0, ...more) => later(action, time + wait(), ...more);
  MessagePort.prototype.postMessage = function (...message) {
    wait() ? later(() => post.apply(this, message), wait()) : post.apply(this, message);
  };
  window.calm = () => new Promise((done) => { window.isBusy = false; later(done, 800); });
})()"""
"""While a page is busy, it comes only later to what it puts off; to keys it comes at once. React puts off with messages."""


@pytest.fixture
def open_busy(open_page: Open) -> Open:
    """Opens a page that can be made busy."""

    def open_busy(path: str) -> Page:
        page = open_page("about:blank")
        page.add_init_script(PUT_OFF)
        page.goto(path)
        return page

    return open_busy


def make_busy(page: Page) -> None:
    page.evaluate("window.isBusy = true")


def calm(page: Page) -> None:
    """Return when the page has come to all that it had put off."""
    page.evaluate("calm()")


@pytest.mark.parametrize(("word", "address"), [("triggers", "/triggers"), ("work", "/workflows"), ("", "/")])
def test_the_palette_goes_where_the_letters_say_though_they_are_not_drawn_yet(
    open_busy: Open, word: str, address: str
) -> None:
    page = open_busy("/runs")
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    make_busy(page)
    page.keyboard.press("Control+k")
    page.keyboard.type(word)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{address}")


def test_enter_in_the_palette_waits_for_the_answer_to_what_was_typed(engine: Engine, open_page: Open) -> None:
    for name in ("named-wanted", "named-other"):
        builder = Builder("shape")
        builder.node("total", job=total)
        engine.start(builder, run_id=name).wait(20)
    page = open_page("/workers")
    expect(page.get_by_role("heading", name="Workers")).to_be_visible()
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/api/v1/runs?q=**", hold)
    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Go to")
    expect(palette.get_by_role("option").filter(has_text="named-other")).to_be_visible()
    with page.expect_request("**/api/v1/runs?q=named-wanted**"):
        page.keyboard.type("named-wanted")
        page.keyboard.press("Enter")
    expect(palette.get_by_role("option").filter(has_text="named-other")).to_be_disabled()
    held[-1].continue_()
    page.wait_for_url("**/runs/named-wanted")
    expect(palette).to_have_count(0)


def test_arrows_choose_in_the_palette_and_more_letters_choose_anew(engine: Engine, open_page: Open) -> None:
    page = open_page("/")
    expect(page.get_by_role("heading", name="Home")).to_be_visible()
    page.keyboard.press("Control+k")
    box = page.get_by_role("combobox", name="Go to")
    expect(box).to_be_focused()
    chosen = page.get_by_role("option", selected=True)
    for key, name in (("ArrowDown", "Runs"), ("ArrowDown", "Workflows"), ("ArrowUp", "Runs"), ("w", "Workflows")):
        page.keyboard.press(key)
        expect(chosen).to_have_text(name)
        expect(box).to_have_attribute("aria-activedescendant", chosen.get_attribute("id") or "")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/workers")


def test_the_palette_gives_the_focus_back_to_where_it_was(engine: Engine, open_page: Open) -> None:
    engine.start(Order(order_id=1)).wait(20)
    page = open_page("/runs")
    grid = page.get_by_role("grid", name="Runs")
    grid.focus()
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox", name="Go to")).to_be_focused()
    page.keyboard.press("Escape")
    expect(grid).to_be_focused()


@pytest.mark.parametrize(
    ("key", "role", "name"), [("Control+k", "combobox", "Go to"), ("/", "searchbox", "Search runs")]
)
def test_a_dialog_that_was_closed_takes_no_focus_from_a_box_that_one_writes_into(
    open_busy: Open, key: str, role: str, name: str
) -> None:
    page = open_busy("/runs")
    page.get_by_role("button", name="Keys and help").click()
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    make_busy(page)
    page.keyboard.press("Escape")
    page.keyboard.press(key)
    page.keyboard.type("work")
    calm(page)
    page.keyboard.type("ers")
    expect(page.get_by_role(role, name=name)).to_have_value("workers")  # type: ignore[arg-type]


def test_a_menu_takes_no_focus_from_the_field_of_the_dialog_that_it_opened(open_busy: Open) -> None:
    page = open_busy("/runs?status=%5B%22FAILED%22%5D")
    page.get_by_role("button", name="Views").click()
    page.get_by_role("menuitem", name="Save this view…").focus()
    make_busy(page)
    page.keyboard.press("Enter")
    page.keyboard.type("My fail")
    calm(page)
    page.keyboard.type("ures")
    expect(page.get_by_label("Name")).to_have_value("My failures")


def test_what_is_typed_while_another_page_is_on_its_way_does_not_lead_back(open_page: Open) -> None:
    page = open_page("/runs")
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/assets/page-*.js", hold)
    page.keyboard.press("g")
    page.keyboard.press("w")
    page.keyboard.press("/")
    page.keyboard.type("ord")
    page.wait_for_timeout(400)  # longer than the box waits
    for route in held:
        route.continue_()
    expect(page.get_by_role("heading", name="Workflows")).to_be_visible()
    assert page.url.endswith("/workflows")
