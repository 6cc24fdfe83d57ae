"""The page of a run: what it shows while nodes turn, groups, the camera, and dialogs."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Locator, Page, Route, expect

from stepwell import Builder, Engine, Run
from tests.browser.shop import Gate, Order, Relay, square, total

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
    for across in range(-300, 301, 20):
        page.mouse.click(middle[0] + across, middle[1])
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
