"""Every page once, light and dark: axe finds nothing wrong, contrast of colours included; no error in the console, nothing that
the policy forbids, a bounded page; and keys reach what the page is for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.chromium import ROOT
from tests.browser.screenshots import Site, nothing, opened, pages, sample_site, sign_in

AXE = ROOT / "ui/node_modules/axe-core/axe.min.js"
NODES = 1_500
READY = """() => !document.querySelector('[role=status][aria-label^=Load], [aria-busy=true]')
  && document.querySelector('main, [role=dialog]')?.innerText.length > 10"""
STILL = """() => Promise.allSettled(document.getAnimations()
  .filter((each) => each.effect.getTiming().iterations === 1).map((each) => each.finished))"""
CHECK = """(rules) => axe.run(document, {
  resultTypes: ['violations'], preload: false, ...(rules ? { runOnly: { type: 'rule', values: rules } } : {}),
}).then(({ violations }) => violations.filter((each) => ['serious', 'critical'].includes(each.impact)).flatMap((each) =>
  each.nodes.map((node) => `${each.id}: ${node.target.join(' ')}: ${node.html.slice(0, 120)}: ${
    node.any[0]?.message ?? node.all[0]?.message ?? node.none[0]?.message}`)))"""


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with sample_site(tmp_path_factory.mktemp("sample")) as site:
        yield site


Visit = Callable[..., Page]


@pytest.fixture
def visit(browser: Browser, sample: Site, watch: Callable[[Page], Page]) -> Iterator[Visit]:
    """A page of somebody who is signed in, and may do everything."""
    contexts = []

    def visit(**options: Any) -> Page:
        size = {"width": 1280, "height": 800}
        context = browser.new_context(base_url=sample.url, viewport=size, reduced_motion="reduce", **options)
        contexts.append(context)
        sign_in(context, sample.token)
        return watch(context.new_page())

    yield visit
    for context in contexts:
        context.close()


HALVES = {"first half": slice(0, None, 2), "second half": slice(1, None, 2)}


@pytest.mark.timeout(400)  # on a machine that others keep busy: each page is looked at twice
@pytest.mark.parametrize("half", HALVES)
def test_axe_finds_nothing_wrong_on_any_page(sample: Site, visit: Visit, half: str) -> None:
    """What has nothing to do with colours is the same in the dark."""
    page = visit()
    page.add_init_script(AXE.read_text())
    wrong: dict[str, list[str]] = {}
    views = {name: (address, nothing) for name, address in pages(sample.runs).items()} | opened(sample.runs)
    for name, (address, action) in list(views.items())[HALVES[half]]:
        page.goto(address)
        page.wait_for_function(READY)
        action(page)
        page.wait_for_function(READY)
        problems = []
        for scheme, rules in (("light", None), ("dark", ["color-contrast"])):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            page.wait_for_function("(scheme) => document.documentElement.dataset.theme === scheme", arg=scheme)
            page.evaluate(STILL)
            problems += [f"{scheme}: {problem}" for problem in page.evaluate(CHECK, rules)]
        if (nodes := page.locator("*").count()) > NODES:
            problems.append(f"{nodes} elements")
        if problems:
            wrong[name] = problems
    assert not wrong, "\n".join(f"{name}\n  " + "\n  ".join(problems) for name, problems in wrong.items())


FOCUSED = """() => {
  const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(document.activeElement);
  const isSeen = outlineStyle !== 'none' && parseFloat(outlineWidth) > 0 || boxShadow !== 'none';
  return isSeen || document.activeElement === document.body || document.activeElement.outerHTML;
}"""
TABS = 60


def tab_to(page: Page, target: Locator) -> None:
    """By the key alone; on the way, one sees where one is."""
    expect(target).to_be_visible()
    for _ in range(TABS):
        page.keyboard.press("Tab")
        assert (where := page.evaluate(FOCUSED)) is True, f"the focus cannot be seen on {where}"
        if target.evaluate("(element) => element === document.activeElement"):
            return
    raise AssertionError(f"{TABS} times Tab do not reach it on {page.url}")


def test_keys_reach_what_each_page_is_for(sample: Site, visit: Visit) -> None:
    page = visit()
    failed = f"/runs/{sample.runs['failed'].id}"
    for address, role, name in (
        ("/", "link", "All of them"),
        (f"{failed}?seq=6", "button", "Fork from here"),
        (f"{failed}?view=table&node=charge", "button", "Run again"),
        (f"{failed}?view=logs", "log", "Log lines"),
        (f"/compare/{sample.runs['failed'].id}/{sample.runs['fork'].id}", "button", "Change sides"),
        ("/workflows", "grid", "Workflows"),
        ("/workflows/Checkout", "button", "Start"),
        ("/workflows/nightly-report?tab=start", "button", "Start"),
        ("/workflows/nightly-report?tab=versions", "button", "Activate"),
        ("/triggers", "grid", "Triggers"),
        ("/triggers?name=report-nightly", "button", "Fire now"),
        ("/workers", "link", "Checkout"),
    ):
        page.goto(address)
        tab_to(page, page.get_by_role(role, name=name, exact=True).first)  # type: ignore[arg-type]


def test_a_run_is_found_understood_and_retried_without_a_mouse(sample: Site, visit: Visit) -> None:
    page = visit()
    page.goto("/runs?status=%5B%22FAILED%22%5D&workflow=Checkout")
    tab_to(page, page.get_by_role("grid", name="Runs"))
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/*")
    tab_to(page, page.get_by_role("application", name="Graph of Checkout"))
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    panel = page.get_by_role("complementary", name="Node")
    expect(panel.get_by_text("was declined").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    page.get_by_role("link", name="Stepwell, home").focus()
    retry = page.get_by_role("button", name="Retry", exact=True)
    tab_to(page, retry)
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("It touches 3 nodes")).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(retry).to_be_focused()
    page.keyboard.press("Control+k")
    page.keyboard.type("triggers")
    page.keyboard.press("Enter")
    page.wait_for_url("**/triggers")
