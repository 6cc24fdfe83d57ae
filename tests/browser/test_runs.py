"""What people do with runs: start, watch, understand, mend, retry, cancel many, look back, fork, compare."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, Route, expect

from stepwell import Builder, Engine
from stepwell.core.store import reader
from stepwell.server.serving import Serving
from tests.browser.shop import Chatty, Gate, Order, square, talk, total

Open = Callable[..., Page]
REQUESTS = "performance.getEntriesByType('resource').map((each) => each.name)"
NEXT_FRAME = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def node(page: Page, name: str, status: str) -> None:
    expect(page.locator(f'[data-node="{name}"][data-status="{status}"]')).to_be_visible()


def test_start_from_the_form_and_watch_the_nodes_turn(
    engine: Engine, open_page: Open, signals: Callable[[str], None]
) -> None:
    page = open_page("/workflows")
    page.get_by_role("link", name="Order", exact=True).click()
    page.get_by_role("button", name="Start").first.click()
    expect(page.get_by_label("order_id")).to_be_visible()
    page.get_by_role("button", name="Start").last.click()
    expect(page.get_by_text("is required")).to_be_visible()
    assert "/workflows/" in page.url
    page.get_by_label("order_id").fill("7")
    signals("card-accepted")
    signals("truck-away")
    page.get_by_role("button", name="Start").last.click()
    page.wait_for_url("**/runs/*")
    node(page, "ship", "RUNNING")
    signals("truck-back")
    for name in ("validate", "check_fraud", "check_stock", "charge", "ship"):
        node(page, name, "COMPLETED")
    expect(page.locator("header").get_by_text("completed").first).to_be_visible()
    run = engine.get(page.url.rpartition("/")[2])
    assert (run.input, run.status) == ({"order_id": 7, "note": None}, "COMPLETED")


def test_fail_read_why_mend_retry(engine: Engine, open_page: Open, signals: Callable[[str], None]) -> None:
    run = engine.start(Order(order_id=3))
    page = open_page(f"/runs/{run.id}")
    node(page, "charge", "FAILED")
    node(page, "ship", "UPSTREAM_FAILED")
    page.keyboard.press("f")
    panel = page.get_by_role("complementary", name="Node")
    expect(panel.get_by_text("the card of order 3 was declined").first).to_be_visible()
    panel.get_by_role("tab", name="Attempts").click()
    expect(panel.get_by_text("ValueError: the card of order 3 was declined").first).to_be_visible()
    expect(panel.get_by_text("Traceback", exact=False).first).to_be_visible()
    signals("card-accepted")
    page.get_by_role("button", name="Retry", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("It touches 2 nodes")).to_be_visible()
    expect(dialog.get_by_text(f"stepwell retry {run.id}")).to_be_visible()
    dialog.get_by_role("button", name="Retry").click()
    node(page, "charge", "COMPLETED")
    node(page, "ship", "COMPLETED")
    run.wait(timeout=20)
    assert len(run.node("validate").attempts) == 1  # only what failed ran again


def test_cancel_in_bulk_what_the_preview_shows_and_nothing_else(engine: Engine, open_page: Open) -> None:
    held = [engine.start(Gate(), tags={"batch": "a"}) for _ in range(3)]
    other = engine.start(Gate(), tags={"batch": "b"})
    page = open_page("/runs?tag=%5B%22batch%3Da%22%5D")
    expect(page.get_by_role("row")).to_have_count(4)  # with the head
    page.get_by_role("button", name="All of these").click()
    page.get_by_role("menuitem", name="Cancel what is listed").click()
    dialog = page.get_by_role("dialog")
    nodes = sum(len(run.cancel(dry_run=True)) for run in held)
    expect(
        dialog.get_by_text(f"3 runs would take it, and {nodes} nodes would change. This is how it was at ")
    ).to_be_visible()
    late = engine.start(Gate(), tags={"batch": "a"})
    held[0].pause()
    dialog.get_by_role("button", name="cancel 3 runs").click()
    expect(
        dialog.get_by_text("It was done to 2 runs; 1 run changed after the preview and was left alone")
    ).to_be_visible()
    expect(dialog.get_by_role("listitem").first).to_contain_text("is PAUSED")
    dialog.get_by_role("button", name="Close").last.click()
    expect(page.get_by_role("row").get_by_text("cancelled")).to_have_count(2, timeout=20_000)
    assert {run.status for run in held[1:]} <= {"CANCELLING", "CANCELLED"}
    assert (held[0].status, other.status) == ("PAUSED", "RUNNING")
    assert late.status in ("PENDING", "RUNNING")


def test_a_preview_of_many_runs_can_be_made_again_and_goes_on_with_the_rest(engine: Engine, open_page: Open) -> None:
    """The page asks for a thousand runs at once; here the server is asked for two."""
    runs = [engine.start(Gate(), tags={"batch": "rest"}) for _ in range(3)]
    page = open_page("/runs?tag=%5B%22batch%3Drest%22%5D")

    def ask_for_two(route: Route) -> None:
        body = route.request.post_data_json
        route.continue_(post_data={**body, "limit": 2} if body.get("dry_run") else body)

    page.route("**/api/v1/bulk/pause", ask_for_two)
    page.get_by_role("button", name="All of these").click()
    page.get_by_role("menuitem", name="Pause what is listed").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("More runs match than one request takes")).to_be_visible()
    runs[2].cancel()
    dialog.get_by_role("button", name="Preview again").click()
    expect(dialog.get_by_text("2 runs would take it")).to_be_visible()
    expect(dialog.get_by_text(runs[0].id)).to_be_visible()
    runs.append(engine.start(Gate(), tags={"batch": "rest"}))
    dialog.get_by_role("button", name="Preview again").click()
    expect(dialog.get_by_text(runs[3].id)).to_be_visible()
    dialog.get_by_role("button", name="pause 2 runs").click()
    expect(dialog.get_by_text("It was done to 2 runs")).to_be_visible()
    dialog.get_by_role("button", name="Preview the rest").click()
    expect(dialog.get_by_text("1 run would take it")).to_be_visible()
    dialog.get_by_role("button", name="pause 1 run").click()
    expect(dialog.get_by_text("It was done to 1 run.")).to_be_visible()
    expect(dialog.get_by_role("button", name="Preview the rest")).to_have_count(0)
    assert [run.status for run in runs] == ["PAUSED", "PAUSED", runs[2].status, "PAUSED"]


def test_look_back_fork_and_compare(engine: Engine, open_page: Open, signals: Callable[[str], None]) -> None:
    run = engine.start(Order(order_id=5))

    page = open_page(f"/runs/{run.id}")
    node(page, "charge", "FAILED")
    page.get_by_label("Moment of the history").focus()
    page.keyboard.press("Home")
    expect(page.get_by_role("button", name="Back to now")).to_be_visible()
    node(page, "charge", "PENDING")
    assert "seq=1" in page.url
    page.reload()
    node(page, "charge", "PENDING")
    page.get_by_role("button", name="Back to now").click()
    node(page, "charge", "FAILED")
    row = reader.get_run(engine.parts.store, run.wait(20).id)
    assert row is not None
    moment = page.get_by_label("Moment of the history")
    expect(moment).to_have_value(str(row.seq))
    moment.focus()
    for seq in (row.seq - 1, row.seq - 2):
        page.keyboard.press("ArrowLeft")
        page.wait_for_url(f"**seq={seq}")
    signals("card-accepted")
    page.get_by_role("button", name="Fork from here").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Fork", exact=True).click()
    page.wait_for_url(lambda address: run.id not in address)
    node(page, "ship", "COMPLETED")
    page.get_by_role("button", name="More").click()
    page.get_by_role("menuitem", name="Compare with its origin").click()
    page.wait_for_url("**/compare/**")
    expect(page.get_by_text("They first part at")).to_be_visible()
    page.get_by_role("radio", name="Nodes").click()
    expect(page.get_by_role("row").filter(has_text="charge").get_by_text("other status", exact=False)).to_be_visible()


def test_follow_a_long_log(engine: Engine, open_page: Open, signals: Callable[[str], None]) -> None:
    run = engine.start(Chatty())
    page = open_page(f"/runs/{run.id}?view=logs")
    expect(page.get_by_text("line 899")).to_be_visible()
    assert page.locator("*").count() < 1_500
    signals("chat-over")
    expect(page.get_by_text("the very last line")).to_be_visible()
    page.get_by_label("Level").select_option("ERROR")
    expect(page.get_by_text("line 700")).to_be_visible()
    page.get_by_label("Level").select_option("")
    page.get_by_placeholder("Search in all lines").fill("line 42")
    expect(page.get_by_text("line 420", exact=True)).to_be_visible()


def test_a_log_opens_at_its_end_and_older_lines_come_as_one_scrolls_up(
    engine: Engine, open_page: Open, signals: Callable[[str], None]
) -> None:
    made = Builder("talks")
    for number in range(5):
        made.node(f"talk_{number}", job=talk, depends_on=[f"talk_{number - 1}"] if number else [])
    signals("chat-over")
    run = engine.start(made)
    run.wait(timeout=20)
    page = open_page(f"/runs/{run.id}")
    page.evaluate("performance.clearResourceTimings()")
    page.get_by_role("radio", name="Logs").click()
    log = page.get_by_role("log")
    expect(log.get_by_text("the very last line")).to_be_visible()
    read = [each for each in page.evaluate(REQUESTS) if "/logs" in each]
    assert ["tail=" in each for each in read] == [True], "one request reads the end"
    assert page.locator("*").count() < 1_500
    while log.get_by_role("button", name="talk_0").count() == 0 or log.get_by_text("line 0", exact=True).count() == 0:
        log.evaluate("(log) => { log.scrollTop = Math.max(0, log.scrollTop - 8000) }")
        page.evaluate(NEXT_FRAME)
    expect(log.get_by_role("button", name="talk_0").first).to_be_visible()
    address = log.get_by_title("line 11:", exact=False).first
    address.click()
    page.wait_for_url("**line=1.10.*")
    page.reload()
    expect(log.get_by_role("button", name="talk_0").first).to_be_visible()


def test_a_reload_in_the_middle_loses_nothing(engine: Engine, open_page: Open, signals: Callable[[str], None]) -> None:
    run = engine.start(Gate())
    page = open_page(f"/runs/{run.id}?node=hold&view=graph")
    node(page, "hold", "RUNNING")
    page.reload()
    node(page, "hold", "RUNNING")
    expect(page.get_by_role("complementary", name="Node")).to_be_visible()
    signals("gate-open")
    node(page, "after", "COMPLETED")


def test_a_fan_is_one_item_that_opens_in_place(engine: Engine, open_page: Open) -> None:
    made = Builder("squares")
    parts = made.fan_out(range(40), job=square, name=lambda i: f"square_{i}", args=lambda i: {"number": i})
    made.node("total", job=total, depends_on=parts)
    run = engine.start(made)
    page = open_page(f"/runs/{run.id}")
    group = page.locator("[data-group]").first
    expect(group).to_contain_text("40")
    expect(group).to_contain_text("✗ 1")
    layouts = int(page.locator("html").get_attribute("data-layouts") or 0)
    group.click()
    expect(page.locator("[data-node][data-status=FAILED]").first).to_be_visible()
    assert int(page.locator("html").get_attribute("data-layouts") or 0) == layouts + 1
    assert page.locator("*").count() < 1_500


def test_statuses_lay_nothing_out(
    engine: Engine, open_page: Open, signals: Callable[[str], None], site: Serving
) -> None:
    run = engine.start(Gate())
    page = open_page(f"/runs/{run.id}")
    node(page, "hold", "RUNNING")
    before = page.locator("html").get_attribute("data-layouts")
    signals("gate-open")
    node(page, "after", "COMPLETED")
    assert page.locator("html").get_attribute("data-layouts") == before == "1"


def test_a_view_is_saved_in_this_browser_and_forgotten(engine: Engine, open_page: Open) -> None:
    engine.start(Order(order_id=4)).wait(timeout=20)
    page = open_page("/runs?workflow=Order")
    views = page.get_by_role("button", name="Views")
    views.click()
    page.get_by_role("menuitem", name="Save this view…").click()
    page.get_by_label("Name").fill("My orders")
    page.get_by_role("button", name="Save", exact=True).click()
    page.goto("/runs")
    views.click()
    page.get_by_role("menuitem", name="My orders", exact=True).click()
    page.wait_for_url("**/runs?workflow=Order")
    views.click()
    page.get_by_role("menuitem", name="Forget “My orders”").click()
    views.click()
    expect(page.get_by_role("menuitem", name="My orders")).to_have_count(0)


def test_two_runs_that_are_ticked_are_compared(engine: Engine, open_page: Open) -> None:
    first, second = (engine.start(Order(order_id=number)).wait(timeout=20) for number in (4, 5))
    page = open_page("/runs")
    grid = page.get_by_role("grid", name="Runs")
    expect(grid.get_by_role("row")).to_have_count(3)
    page.get_by_label(f"Tick {first.id} to compare it").check()
    expect(page.get_by_role("link", name="Compare these two")).to_have_count(0)
    page.get_by_label(f"Tick {second.id} to compare it").check()
    page.get_by_role("link", name="Compare these two").click()
    page.wait_for_url(f"**/compare/{first.id}/{second.id}")
    expect(page.get_by_text("They first part at")).to_be_visible()
