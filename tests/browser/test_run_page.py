"""The page of a run: what it shows while nodes turn, groups, the camera, and dialogs."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import product
from pathlib import Path

from playwright.sync_api import Locator, Page, Route, expect

from stepwell import Builder, Engine, Run, Workflow, step
from tests.browser.shop import Chatty, Gate, Hostile, Order, Relay, square, total
from tests.engine.waiting import eventually

Open = Callable[..., Page]
Signal = Callable[[str], None]
LAYER = "[role=application] > div"


def node(page: Page, name: str, status: str | None = None) -> Locator:
    wanted = f'[data-node="{name}"]' + ("" if status is None else f'[data-status="{status}"]')
    return page.locator(wanted)


def squares(engine: Engine, name: str = "square") -> Run:
    """A fan of forty, the fourteenth of which fails, below which nothing can run."""
    builder = Builder("squares")
    parts = builder.fan_out(range(40), job=square, name=lambda i: f"{name}_{i}", args=lambda i: {"number": i})
    builder.node("total", job=total, depends_on=parts)
    run = engine.start(builder)
    run.wait(timeout=30)
    return run


def id_of(run: Run, name: str) -> str:
    return run.node(name).id


def test_a_node_runs_as_soon_as_it_is_claimed(engine: Engine, open_page: Open, signals: Signal) -> None:
    run = engine.start(Relay())
    page = open_page(f"/runs/{run.id}")
    expect(node(page, "one", "RUNNING")).to_be_visible()
    expect(node(page, "two", "PENDING")).to_be_visible()
    page.route("**/graph?*", lambda route: route.abort())
    page.route("**/graph", lambda route: route.abort())  # so that only the stream tells
    signals("one-goes")
    expect(node(page, "one", "COMPLETED")).to_be_visible()
    expect(node(page, "two", "RUNNING")).to_be_visible()
    page.unroute_all()
    signals("two-goes")
    expect(node(page, "two", "COMPLETED")).to_be_visible()


def test_f_leads_to_what_failed_in_a_closed_group(engine: Engine, open_page: Open) -> None:
    run = squares(engine)
    page = open_page(f"/runs/{run.id}")
    expect(page.locator("[data-group]")).to_have_attribute("aria-expanded", "false")
    page.get_by_title("The next failure (f)").click()
    failed = node(page, id_of(run, "square_13"), "FAILED")
    expect(failed).to_be_visible()
    expect(failed).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("complementary", name="Node").get_by_role("heading", name="square_13")).to_be_visible()
    page.locator("[data-group][aria-expanded=true]").click()
    expect(page.locator("[data-group][aria-expanded=false]")).to_be_visible()
    assert "node=" not in page.url, "what was selected in a group is not once the group is closed"
    page.keyboard.press("f")
    expect(failed).to_be_visible()
    page.keyboard.press("Escape")
    expect(failed).to_be_visible()


def test_a_link_to_a_node_opens_the_groups_around_it(engine: Engine, open_page: Open) -> None:
    run = squares(engine)
    page = open_page(f"/runs/{run.id}?node={id_of(run, 'square_7')}")
    expect(node(page, id_of(run, "square_7"), "COMPLETED")).to_be_visible()
    expect(page.get_by_role("complementary", name="Node").get_by_role("heading", name="square_7")).to_be_visible()


def test_a_search_leads_into_closed_groups(engine: Engine, open_page: Open) -> None:
    run = squares(engine)
    page = open_page(f"/runs/{run.id}")
    page.get_by_placeholder("Find a node").fill("Square_3")
    page.get_by_role("button", name="11 matches").click()
    expect(node(page, id_of(run, "square_3"))).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="11 matches").click()
    expect(node(page, id_of(run, "square_30"))).to_have_attribute("aria-pressed", "true")


def test_keys_lead_over_a_group_and_open_it(engine: Engine, open_page: Open) -> None:
    run = squares(engine, "a,b")  # a comma in an address that keeps a list
    page = open_page(f"/runs/{run.id}")
    graph = page.get_by_role("application")
    expect(node(page, id_of(run, "total"), "UPSTREAM_FAILED")).to_be_visible()
    graph.focus()
    page.keyboard.press("ArrowRight")
    expect(graph.get_by_text("total, upstream failed")).to_be_attached()
    page.keyboard.press("ArrowLeft")
    expect(graph.get_by_text("a,b, group of 40 nodes", exact=False)).to_be_attached()
    page.keyboard.press("Enter")
    expect(node(page, id_of(run, "a,b_0"))).to_be_visible()
    page.reload()
    expect(node(page, id_of(run, "a,b_0"))).to_be_visible()


def test_what_succeeded_can_be_left_out(engine: Engine, open_page: Open) -> None:
    run = engine.start(Order(order_id=4))
    run.wait(timeout=20)
    page = open_page(f"/runs/{run.id}")
    expect(node(page, "validate")).to_be_visible()
    page.get_by_role("button", name="Hide what succeeded").click()
    expect(node(page, "validate")).to_have_count(0)
    expect(node(page, "charge", "FAILED")).to_be_visible()
    page.get_by_role("button", name="Hide what succeeded").click()
    expect(node(page, "validate")).to_be_visible()


def test_the_camera_stays_where_one_has_moved_it(engine: Engine, open_page: Open, signals: Signal) -> None:
    run = engine.start(Relay())
    page = open_page(f"/runs/{run.id}?node=one")
    expect(node(page, "one", "RUNNING")).to_be_visible()
    box = page.get_by_role("application").bounding_box()
    assert box
    page.mouse.move(box["x"] + 300, box["y"] + box["height"] - 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 150, box["y"] + box["height"] - 60, steps=4)  # a part of `one` is out of sight
    page.mouse.up()
    moved = page.locator(LAYER).first.get_attribute("style")
    signals("one-goes")
    expect(node(page, "two", "RUNNING")).to_be_visible()
    with page.expect_response("**/graph*"):
        signals("two-goes")
    expect(node(page, "two", "COMPLETED")).to_be_visible()
    assert page.locator(LAYER).first.get_attribute("style") == moved


def test_a_drag_from_afar_selects_nothing(engine: Engine, open_page: Open) -> None:
    run = engine.start(Order(order_id=4))
    run.wait(timeout=20)
    page = open_page(f"/runs/{run.id}")
    expect(node(page, "validate")).to_be_visible()
    graph = page.get_by_role("application")
    graph.focus()
    for _ in range(8):
        page.keyboard.press("-")
    expect(node(page, "validate")).to_have_count(0)
    box = graph.bounding_box()
    assert box
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    for across in range(-200, 201, 40):  # wherever the nodes are, some drag ends on one
        page.mouse.move(middle[0] + across, middle[1] - 40)
        page.mouse.down()
        page.mouse.move(middle[0] + across, middle[1], steps=3)
        page.mouse.up()
        page.mouse.move(middle[0] + across, middle[1])
        page.mouse.down()
        page.mouse.move(middle[0] + across, middle[1] - 40, steps=3)
        page.mouse.up()
    assert "node=" not in page.url
    for down, across in product((0, 15, -15, 30, -30, 45, -45, 60, -60), range(-300, 301, 20)):
        page.mouse.click(middle[0] + across, middle[1] + down)
        if "node=" in page.evaluate("location.search"):  # at once: a click beside the nodes would take it back
            break
    expect(page.get_by_role("complementary", name="Node")).to_be_visible()


def test_nothing_is_done_before_one_sees_what_it_touches(engine: Engine, open_page: Open) -> None:
    run = engine.start(Order(order_id=4))
    run.wait(timeout=20)
    page = open_page(f"/runs/{run.id}")
    waiting: list[Route] = []

    def hold(route: Route) -> None:
        waiting.append(route)

    page.route("**/retry", hold)
    page.get_by_role("button", name="Retry", exact=True).click()
    act = page.get_by_role("dialog").get_by_role("button", name="Retry")
    expect(page.get_by_role("dialog").get_by_text("stepwell retry")).to_be_visible()
    expect(act).to_be_disabled()
    for route in waiting:
        route.continue_()
    expect(page.get_by_role("dialog").get_by_text("It touches 2 nodes")).to_be_visible()
    expect(act).to_be_enabled()


def test_a_fork_never_shows_the_graph_of_its_origin(engine: Engine, open_page: Open) -> None:
    run = squares(engine)
    page = open_page(f"/runs/{run.id}")
    expect(page.locator("[data-group]")).to_be_visible()
    other = engine.start(Gate())
    page.route(f"**/{other.id}/graph*", lambda route: None)
    page.evaluate(f"history.pushState({{}}, '', '/runs/{other.id}'); dispatchEvent(new PopStateEvent('popstate'))")
    expect(page.get_by_role("heading", name="Gate")).to_be_visible()
    expect(page.locator("[data-group]")).to_have_count(0)
    page.unroute_all()


def panel_of(page: Page) -> Locator:
    return page.get_by_role("complementary", name="Node")


def test_a_running_node_says_how_far_it_is(engine: Engine, open_page: Open, signals: Signal) -> None:
    run = engine.start(Relay())
    page = open_page(f"/runs/{run.id}?node=one")
    bar = page.get_by_role("progressbar", name="parcels")
    expect(node(page, "one").get_by_role("progressbar")).to_have_attribute("aria-valuenow", "25")
    expect(panel_of(page).get_by_text("1 of 4 parcels")).to_be_visible()
    page.get_by_role("radio", name="Table").click()
    expect(page.get_by_role("row").filter(has_text="one").get_by_text("1 of 4 parcels")).to_be_visible()
    signals("one-goes")
    expect(bar).to_have_count(0)


def test_a_running_attempt_names_its_worker_and_its_lease(engine: Engine, open_page: Open) -> None:
    run = engine.start(Relay())
    page = open_page(f"/runs/{run.id}?node=one&tab=attempts")
    expect(panel_of(page).get_by_text("its lease runs out")).to_be_visible()


def test_what_is_slower_than_usual_is_marked(engine: Engine, open_page: Open, signals: Signal, tmp_path: Path) -> None:
    signals("one-goes")
    slow = engine.start(Relay())
    eventually(lambda: slow.node("two").status == "RUNNING")
    time.sleep(2)  # so that the last `two` is not the longest, whatever else the machine does
    signals("two-goes")
    slow.wait(20)
    for _ in range(2):
        engine.start(Relay()).wait(20)
    (tmp_path / "signals" / "one-goes").unlink()
    run = engine.start(Relay())
    page = open_page(f"/runs/{run.id}?node=one")
    expect(page.get_by_role("main").get_by_text("slower than usual")).to_have_count(2)  # the run, and its node
    signals("one-goes")
    run.wait(20)
    page.goto(f"/runs/{run.id}?node=two")
    expect(panel_of(page).get_by_text("completed").first).to_be_visible()
    expect(page.get_by_role("main").get_by_text("slower than usual")).to_have_count(1)


def test_the_past_in_the_table_and_in_the_panel(engine: Engine, open_page: Open) -> None:
    run = engine.start(Order(order_id=4))
    run.wait(timeout=20)
    page = open_page(f"/runs/{run.id}?view=table&seq=1&node=charge")
    row = page.get_by_role("row").filter(has_text="charge")
    expect(row.get_by_text("pending")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="validate").get_by_text("ready")).to_be_visible()
    expect(panel_of(page).get_by_text("At entry 1 it was")).to_contain_text("pending")
    page.get_by_role("button", name="Back to now").click()
    expect(row.locator("[data-status=FAILED]")).to_be_visible()


def test_checkpoints_are_marked_and_the_play_can_be_faster(engine: Engine, open_page: Open, signals: Signal) -> None:
    for name in ("one-goes", "two-goes"):
        signals(name)
    run = engine.start(Relay())
    run.wait(timeout=20)
    page = open_page(f"/runs/{run.id}")
    page.get_by_role("button", name="Go to the checkpoint one is done").click()
    expect(node(page, "one", "COMPLETED")).to_be_visible()
    expect(node(page, "two", "READY")).to_be_visible()
    page.get_by_role("button", name="Speed of play: 1 entry at a time").click()
    page.get_by_role("button", name="Speed of play: 4 entries at a time").click()
    page.get_by_role("button", name="Play the history").click()
    expect(page.get_by_text("now", exact=True)).to_be_visible()


def test_what_a_node_was_given(engine: Engine, open_page: Open) -> None:
    run = engine.start(Order(order_id=4))
    run.wait(timeout=20)
    page = open_page(f"/runs/{run.id}?node=charge&tab=input")
    expect(panel_of(page).get_by_role("heading", name="check_fraud")).to_be_visible()
    expect(panel_of(page).get_by_text("0.1")).to_be_visible()
    node(page, "validate").click()
    expect(panel_of(page).get_by_text("The run has this input")).to_be_visible()


def test_a_large_output_is_loaded_as_a_tree_on_request(engine: Engine, open_page: Open) -> None:
    run = engine.start(Hostile())
    run.wait(timeout=30)
    page = open_page(f"/runs/{run.id}?node=large&tab=output")
    panel_of(page).get_by_role("button", name="Load its").click()
    expect(panel_of(page).get_by_text("long:")).to_be_visible()


def test_arrow_keys_lead_through_the_tabs_of_a_node(engine: Engine, open_page: Open) -> None:
    run = engine.start(Order(order_id=4))
    run.wait(timeout=20)
    page = open_page(f"/runs/{run.id}?node=charge")
    panel_of(page).get_by_role("tab", name="Why").focus()
    page.keyboard.press("ArrowRight")
    expect(panel_of(page).get_by_role("tab", name="Attempts")).to_be_focused()
    expect(panel_of(page).get_by_role("tab", name="Attempts")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("End")
    expect(panel_of(page).get_by_role("tabpanel", name="Proof")).to_be_visible()


def test_why_offers_what_it_advises(engine: Engine, open_page: Open) -> None:
    run = engine.start(Order(order_id=4))
    run.wait(timeout=20)
    page = open_page(f"/runs/{run.id}?node=charge")
    panel_of(page).get_by_role("button", name="Retry…").click()
    expect(page.get_by_role("dialog").get_by_text("It touches 2 nodes")).to_be_visible()


def test_a_run_that_lacks_an_input_is_given_it(engine: Engine, open_page: Open) -> None:
    def measure(self: Workflow) -> int:
        return 0

    names = {"__module__": "tests.browser.shop", "__qualname__": "Sized", "measure": step(measure)}
    older = type(Workflow)("Sized", (Workflow,), names)
    run = engine.start(older())
    page = open_page(f"/runs/{run.id}")
    page.get_by_role("button", name="Resume", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Input that it lacks").fill('{"size": 7}')
    expect(dialog.get_by_text("--input size=7")).to_be_visible()
    dialog.get_by_role("button", name="Resume").click()
    expect(node(page, "measure", "COMPLETED")).to_be_visible()
    assert run.output("measure") == 7


def test_who_waits_for_a_run_is_notified_of_its_end(engine: Engine, open_page: Open, signals: Signal) -> None:
    run = engine.start(Relay())
    page = open_page(f"/runs/{run.id}", permissions=["notifications"])
    page.evaluate(
        "() => { window.told = []; window.Notification = class extends Notification {"
        " constructor(text, more) { super(text, more); told.push(text) } } }"
    )
    page.get_by_role("button", name="Notify me when it ends").click()
    expect(page.get_by_role("button", name="Notify me when it ends")).to_have_attribute("aria-pressed", "true")
    for name in ("one-goes", "two-goes"):
        signals(name)
    expect(node(page, "two", "COMPLETED")).to_be_visible()
    page.wait_for_function("() => told.length === 1")
    assert page.evaluate("told") == ["Relay completed"]


def test_end_follows_a_log_again(engine: Engine, open_page: Open, signals: Signal) -> None:
    run = engine.start(Chatty())
    page = open_page(f"/runs/{run.id}?view=logs")
    log = page.get_by_role("log")
    expect(log.get_by_text("line 899")).to_be_visible()
    log.hover()
    page.mouse.wheel(0, -3_000)
    follow = page.get_by_role("button", name="Follow")
    expect(follow).to_have_attribute("aria-pressed", "false")
    page.keyboard.press("End")
    expect(follow).to_have_attribute("aria-pressed", "true")
    expect(log.get_by_text("line 899")).to_be_visible()
    signals("chat-over")
    expect(log.get_by_text("the very last line")).to_be_visible()


def test_lines_and_rows_stay_when_newer_ones_cannot_be_read(engine: Engine, open_page: Open, signals: Signal) -> None:
    run = engine.start(Chatty())
    page = open_page(f"/runs/{run.id}?view=logs")
    expect(page.get_by_text("line 899")).to_be_visible()
    page.route("**/logs?*", lambda route: route.fulfill(status=503, json={"detail": "the store is away"}))
    expect(page.get_by_role("alert").get_by_text("the store is away")).to_be_visible()
    expect(page.get_by_text("line 899")).to_be_visible()
    page.unroute_all()
    expect(page.get_by_role("alert")).to_have_count(0)
    page.get_by_role("radio", name="Table").click()
    row = page.get_by_role("row").filter(has_text="talk")
    expect(row).to_be_visible()
    page.route("**/nodes?*", lambda route: route.fulfill(status=400, json={"detail": "not now"}))
    signals("chat-over")
    expect(page.get_by_role("alert").get_by_text("not now")).to_be_visible()
    expect(row).to_be_visible()
    page.unroute_all()


def test_a_graph_that_cannot_be_laid_out_says_so_and_is_tried_again(engine: Engine, open_page: Open) -> None:
    run = engine.start(Order(order_id=4))
    run.wait(timeout=20)
    page = open_page("/")
    page.route("**/worker-*.js", lambda route: route.abort())
    page.goto(f"/runs/{run.id}")
    failure = page.get_by_role("alert").filter(has_text="could not be laid out")
    expect(failure).to_be_visible()
    page.unroute_all()
    failure.get_by_role("button", name="Try again").click()
    expect(node(page, "charge", "FAILED")).to_be_visible()
    expect(failure).to_have_count(0)


def test_a_moment_of_the_past_says_so_and_offers_nothing_that_acts_on_now(engine: Engine, open_page: Open) -> None:
    run = engine.start(Order(order_id=4)).wait(timeout=20)
    page = open_page(f"/runs/{run.id}")
    expect(page.get_by_text("5 of 5")).to_be_visible()
    expect(page.get_by_role("button", name="Retry", exact=True)).to_be_visible()
    page.get_by_role("slider", name="Moment of the history").fill("3")
    expect(page.get_by_text("You look at the run as it was after entry 3")).to_be_visible()
    expect(page.get_by_text("1 of 5 then")).to_be_visible()
    expect(page.get_by_role("button", name="Retry", exact=True)).to_have_count(0)
    node(page, "charge").click()
    expect(panel_of(page).get_by_text("At entry 3 it was")).to_be_visible()
    expect(page.get_by_role("button", name="Run again")).to_have_count(0)
    page.get_by_role("button", name="Back to now").click()
    expect(page.get_by_text("5 of 5")).to_be_visible()
    expect(page.get_by_role("button", name="Run again")).to_be_visible()
