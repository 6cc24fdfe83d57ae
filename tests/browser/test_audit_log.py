"""Who did it: what one does in the page is in the log, with the reason one gave."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from stepwell import Engine
from stepwell.history.audit_log import Actor, acting_as
from stepwell.server.access.tokens import create_token
from stepwell.server.serving import Serving
from tests.browser.screenshots import sign_in
from tests.browser.shop import Gate, Order

Open = Callable[..., Page]


def test_what_is_done_in_the_page_is_in_the_log_with_its_reason(engine: Engine, site: Serving, open_page: Open) -> None:
    with acting_as(Actor("nightly", "trigger")):
        run = engine.start(Gate())
    other = engine.start(Order(order_id=3)).wait(20)
    other.retry(reason="again")
    page = open_page(f"/runs/{run.id}")
    page.get_by_role("button", name="Cancel", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Reason").fill("wrong größe: “9 3/4”")
    expect(dialog.get_by_text(f"stepwell cancel {run.id} --reason 'wrong größe: “9 3/4”'")).to_be_visible()
    dialog.get_by_role("button", name="Cancel", exact=True).click()
    expect(page.get_by_text("cancelled").first).to_be_visible()
    page.get_by_role("radio", name="Overview").or_(page.get_by_role("tab", name="Overview")).first.click()
    history = page.locator("section").filter(has=page.get_by_role("heading", name="Who did what"))
    expect(history.get_by_text("wrong größe: “9 3/4”")).to_be_visible()
    expect(history.get_by_role("listitem")).to_have_count(2)
    expect(history.get_by_role("listitem").last).to_contain_text("start workflow: Gate")
    expect(history.get_by_role("listitem").last).to_contain_text("nightly trigger")

    page.get_by_role("link", name="Audit log").click()
    log = page.get_by_role("grid", name="Audit log")
    expect(log.get_by_role("row")).to_have_count(4)  # with the head
    expect(log.get_by_role("row").nth(1)).to_contain_text("loopback web UI")
    page.get_by_label("Action").select_option("cancel")
    expect(log.get_by_role("row")).to_have_count(2)
    assert "action=cancel" in page.url
    page.get_by_label("Action").select_option("")
    page.get_by_label("Id of a run").fill(other.id)
    expect(log.get_by_role("row").nth(1)).to_contain_text("again")
    page.get_by_label("Since").select_option("hour")
    expect(log.get_by_role("row")).to_have_count(2)
    page.reload()
    expect(log.get_by_role("row")).to_have_count(2)
    page.get_by_label("Action").select_option("delete")
    expect(page.get_by_text("No such entry")).to_be_visible()
    assert [entry.reason for entry in engine.audit_log(run)] == ["wrong größe: “9 3/4”", None]


def test_the_log_is_offered_to_those_who_may_see_all_of_it(engine: Engine, site: Serving, open_page: Open) -> None:
    run = engine.start(Gate())
    run.pause(reason="wait")
    for scope, count in (("author", 0), ("admin", 1)):
        page = open_page("/runs")
        sign_in(page.context, create_token(site.service.store, [scope])[0])
        page.goto(f"/runs/{run.id}?view=overview")
        expect(page.get_by_text("wait", exact=True)).to_be_visible()
        expect(page.get_by_role("link", name="Audit log")).to_have_count(count)
