"""The name of the environment in the header of every page, and links to the traces of a run and a node."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from stepwell import Engine
from stepwell.server.service import About
from stepwell.server.serving import Serving
from tests.browser.shop import Order


def test_the_environment_is_named_and_traces_are_linked(
    engine: Engine, site: Serving, open_page: Callable[..., Page], signals: Callable[[str], None]
) -> None:
    site.service.about = About("production", "red", "https://traces.test/{run}?node={node}")
    signals("card-accepted")
    run = engine.start(Order(order_id=1), run_id="order@1").wait(20)
    page = open_page(f"/runs/{run.id}?node=charge")
    name = page.locator("header [data-environment=red]")
    expect(name).to_have_text("production")
    panel = page.get_by_role("complementary", name="Node")
    node = run.node("charge").id
    link = panel.get_by_role("link", name="Traces")
    expect(link).to_have_attribute("href", f"https://traces.test/order%401?node={node}")
    expect(link).to_have_attribute("rel", "noreferrer noopener")
    of_run = page.locator("main header").get_by_role("link", name="Traces").first
    expect(of_run).to_have_attribute("href", "https://traces.test/order%401?node=")
    assert name.evaluate("element => getComputedStyle(element).color") == "rgb(185, 28, 28)"
