"""The list has roots only; a node links to the run that performs it, and the page of that run links back."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from stepwell import Engine
from stepwell.server.serving import Serving
from tests.engine.nightly import Weekly


def test_one_goes_down_to_a_child_run_and_up_again(url: str, site: Serving, open_page: Callable[..., Page]) -> None:
    with Engine(url) as engine:
        (nightly,) = engine.run(Weekly(), run_id="weekly").children()
        (imported,) = nightly.children()
    page = open_page("/runs")
    rows = page.get_by_role("grid").get_by_role("row")
    expect(rows).to_have_count(2)  # with the head
    expect(rows.last).to_contain_text("Weekly")

    page.goto("/runs/weekly?node=sunday")
    page.get_by_role("complementary", name="Node").get_by_role("link", name="performed by run").click()
    expect(page).to_have_url(f"{site.url}/runs/{nightly.id}")
    path = page.get_by_role("navigation", name="Path")
    expect(path).to_have_text("weekly/sunday")

    page.goto(f"/runs/{imported.id}")
    expect(path).to_have_text("weekly/sunday/imported")
    path.get_by_role("link", name="sunday").click()
    expect(page).to_have_url(f"{site.url}/runs/{nightly.id}?node=imported")
    path.get_by_role("link", name="weekly").click()
    expect(page).to_have_url(f"{site.url}/runs/weekly?node=sunday")
    expect(path).to_have_count(0)
