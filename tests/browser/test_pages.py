"""Lists, the start of runs, comparing, workflows, triggers, workers and the shell around them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, Request, Route, expect

from stepwell import Builder, Document, Engine, Pipeline, Trigger
from stepwell.server.access.tokens import create_token, revoke_token
from stepwell.server.serving import Serving
from tests.browser.sample import digest_of
from tests.browser.shop import Order, square, total
from tests.server.running import running

Open = Callable[..., Page]
GREET = "name: greet\nnodes:\n  - {id: hello, handler: transform, config: {template: WORD}}\n"


def requests_of(page: Page, pattern: str) -> list[str]:
    """The addresses that the page asks from now on and that match."""
    asked: list[str] = []

    def note(request: Request) -> None:
        if re.search(pattern, request.url):
            asked.append(request.url)

    page.on("request", note)
    return asked


def one_node(name: str) -> Builder:
    builder = Builder(name)
    builder.node("total", job=total)
    return builder


def sign_in(page: Page, site: Serving, *scopes: str) -> str:
    """With a new token; its id."""
    text, token = create_token(site.service.store, scopes)
    page.get_by_label("Token").fill(text)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Sign in")).to_have_count(0)
    return token.id


def test_versions_come_newest_first_and_are_compared_with_the_one_before(engine: Engine, open_page: Open) -> None:
    for word in ("one", "two", "three"):
        engine.save(Document.parse(GREET.replace("WORD", word)))
    page = open_page("/workflows/greet?tab=versions")
    rows = page.get_by_role("main").locator("tbody tr")
    expect(rows).to_have_count(3)
    assert [row.split()[0] for row in rows.all_inner_texts()] == ["3", "2", "1"]
    expect(page.get_by_text(re.compile(r"\+ .*three"))).to_be_visible()
    expect(page.get_by_text(re.compile(r"- .*two"))).to_be_visible()
    expect(page.get_by_text(re.compile("one"))).to_have_count(0)


def test_a_list_asks_again_only_for_what_is_new_in_it(
    engine: Engine, open_page: Open, signals: Callable[[str], None]
) -> None:
    signals("card-accepted")
    engine.start(Order(order_id=1)).wait(20)
    page = open_page("about:blank")
    streams = requests_of(page, "/events")
    page.goto("/runs?workflow=Order")
    rows = page.get_by_role("row")
    expect(rows.filter(has_text="completed")).to_have_count(1)
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    assert [each.partition("/events")[2] for each in streams] == ["?workflow=Order"]
    asked = requests_of(page, r"/api/v1/runs\?")
    engine.start(one_node("other")).wait(20)
    held = engine.start(Order(order_id=2))
    expect(rows.filter(has_text=held.id).filter(has_text="completed")).to_have_count(1)
    assert len(asked) <= 2, "the new run, and perhaps that it went on while it was asked for"
    expect(rows).to_have_count(3)  # with the head
    expect(rows.filter(has_text="other")).to_have_count(0)


def test_a_refused_page_is_not_asked_for_endlessly(engine: Engine, open_page: Open) -> None:
    for _ in range(120):
        engine.start(one_node("many"))
    page = open_page("/")
    problem = {"title": "Forbidden", "status": 403, "detail": "no more for you"}
    page.route("**/api/v1/runs?**cursor=**", lambda route: route.fulfill(status=403, json=problem))
    asked = requests_of(page, "cursor=")
    page.goto("/runs?workflow=many")
    grid = page.get_by_role("grid", name="Runs")
    expect(grid.get_by_role("row").nth(3)).to_be_visible()
    grid.press("End")
    expect(page.get_by_role("alert").get_by_text("no more for you")).to_be_visible()
    for key in ("k", "j", "k", "j"):  # each renders anew
        grid.press(key)
    assert len(asked) == 1
    page.unroute("**/api/v1/runs?**cursor=**")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_text("120 runs, all of them")).to_be_attached()


def test_a_start_whose_answer_was_lost_starts_one_run(
    engine: Engine, open_page: Open, signals: Callable[[str], None]
) -> None:
    page = open_page("/workflows/Order?tab=start")
    page.get_by_label("order_id").fill("7")

    def lose_the_answer(route: Route) -> None:
        route.fetch()
        route.abort()

    page.route("**/workflows/Order/runs", lose_the_answer)
    page.get_by_role("button", name="Start").last.click()
    expect(page.get_by_role("alert").get_by_text("cannot be reached")).to_be_visible()
    page.unroute("**/workflows/Order/runs")
    page.get_by_role("button", name="Start").last.click()
    page.wait_for_url("**/runs/*")
    assert [run.id for run in engine.runs(workflow="Order")] == [page.url.rpartition("/")[2]]


def test_the_command_of_a_start_keeps_spaces_inside_strings(open_page: Open, site: Serving) -> None:
    page = open_page("/workflows/Order?tab=start")
    page.get_by_role("radio", name="JSON").click()
    page.get_by_label("Input, as JSON").fill('{\n  "order_id": 1,\n  "note": "two  spaces"\n}')
    expect(page.get_by_text('{"order_id":1,"note":"two  spaces"}')).to_be_visible()


def test_the_row_of_the_keys_stays_when_rows_come_in(engine: Engine, open_page: Open) -> None:
    first, second = engine.start(one_node("rows")), engine.start(one_node("rows"))
    page = open_page("/runs?workflow=rows")
    grid = page.get_by_role("grid", name="Runs")
    expect(grid.get_by_role("row")).to_have_count(3)
    grid.press("j")
    expect(grid.locator("[data-active]")).to_contain_text(first.id)
    active = grid.get_attribute("aria-activedescendant")
    expect(page.locator(f'[id="{active}"]')).to_contain_text(first.id)
    engine.start(one_node("rows"))
    expect(grid.get_by_role("row")).to_have_count(4)
    expect(grid.locator("[data-active]")).to_contain_text(first.id)
    grid.press("k")
    expect(grid.locator("[data-active]")).to_contain_text(second.id)
    grid.press("Enter")
    page.wait_for_url(f"**/runs/{second.id}")


def test_compare_reads_all_pages_and_counts_what_differs_in_groups(engine: Engine, open_page: Open) -> None:
    size = 1_100

    def squares(start: int) -> Builder:
        builder = Builder("squares")
        parts = builder.fan_out(
            range(size), job=square, name=lambda i: f"square_{i}", args=lambda i: {"number": start + i}
        )
        builder.node("total", job=total, depends_on=parts)
        return builder

    first, second = (engine.start(squares(start)) for start in (100, 5_000))
    for run in (first, second):
        run.wait(60)
    page = open_page(f"/compare/{first.id}/{second.id}")
    expect(page.get_by_text("1,100 nodes differ")).to_be_visible()
    expect(page.locator("[data-group]").first).to_contain_text("1,100 differ")
    page.get_by_role("radio", name="Nodes").click()
    grid = page.get_by_role("grid")
    expect(grid).to_have_attribute("aria-rowcount", str(size + 2))
    grid.press("End")
    expect(grid.get_by_text("the same")).to_be_visible()
    grid.press("Home")
    grid.press("Enter")
    heading = page.get_by_role("complementary", name="Node in both runs").get_by_role("heading").first
    number = int(heading.inner_text().removeprefix("square_"))
    page.get_by_role("button", name="Whole outputs side by side").click()
    outputs = page.get_by_role("dialog")
    expect(outputs.get_by_role("region", name="First run")).to_contain_text(str((100 + number) ** 2))
    expect(outputs.get_by_role("region", name="Second run")).to_contain_text(str((5_000 + number) ** 2))
    page.reload()
    expect(outputs.get_by_role("region", name="Second run")).to_contain_text(str((5_000 + number) ** 2))


def test_compare_lists_nodes_that_only_the_first_run_has(engine: Engine, open_page: Open) -> None:
    larger = one_node("shape")
    larger.node("gone", job=total)
    first, second = engine.start(larger), engine.start(one_node("shape"))
    for run in (first, second):
        run.wait(20)
    page = open_page(f"/compare/{first.id}/{second.id}")
    expect(page.get_by_text("Only in the first run:")).to_be_visible()
    page.get_by_role("button", name="gone").first.click()
    expect(page.get_by_role("complementary", name="Node in both runs")).to_contain_text("only in one")


def test_a_refused_action_leads_to_sign_in_and_back(engine: Engine, site: Serving, open_page: Open) -> None:
    create_token(site.service.store, ["admin"])
    page = open_page("/workflows/Order?tab=start")
    token = sign_in(page, site, "run")
    page.get_by_label("order_id").fill("7")
    revoke_token(site.service.store, token)
    page.get_by_role("button", name="Start").last.click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert page.url.endswith("/workflows/Order?tab=start")
    sign_in(page, site, "run")
    expect(page.get_by_label("order_id")).to_be_visible()


def test_a_sign_out_that_does_not_arrive_says_so(site: Serving, open_page: Open) -> None:
    create_token(site.service.store, ["admin"])
    page = open_page("/workers")
    sign_in(page, site, "read")
    page.route("**/api/v1/session", lambda route: route.abort())
    page.get_by_role("button", name="Account").click()
    page.get_by_role("menuitem", name="Sign out").click()
    expect(page.get_by_text("You are still signed in")).to_be_visible()
    page.unroute("**/api/v1/session")
    page.get_by_role("button", name="Account").click()
    page.get_by_role("menuitem", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_a_server_that_is_away_is_asked_until_it_is_back(open_page: Open) -> None:
    page = open_page("/workers")
    expect(page.get_by_text("alive").first).to_be_visible()
    page.route("**/api/v1/**", lambda route: route.abort())
    banner = page.get_by_text("The page asks again every few seconds")
    expect(banner).to_be_visible()
    page.unroute("**/api/v1/**")
    expect(banner).to_have_count(0)
    expect(page.get_by_role("alert")).to_have_count(0)


NOTHING = {
    "/": "Nothing has run yet",
    "/runs": "No runs yet",
    "/workflows": "No workflows yet",
    "/triggers": "No triggers",
    "/workers": "No workers",
    "/workflows/Order?tab=runs": "It has never run",
    "/workflows/Order?tab=versions": "There is one version",
    "/compare/one/other": "no node differs",
}


@pytest.mark.parametrize("width", [390, 1280])
def test_an_error_never_looks_like_an_empty_list(open_page: Open, width: int) -> None:
    page = open_page("/workers", viewport={"width": width, "height": 800})
    problem = {"title": "Forbidden", "status": 403, "detail": "not for you"}
    page.route(re.compile(r"/api/v1/(?!session|server)"), lambda route: route.fulfill(status=403, json=problem))
    for address, nothing in NOTHING.items():
        page.goto(address)
        expect(page.get_by_role("alert").get_by_text("not for you").first).to_be_visible()
        expect(page.get_by_text(nothing)).to_have_count(0)
    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Go to")
    palette.get_by_role("combobox").fill("x")
    expect(palette.get_by_role("alert").get_by_text("not for you")).to_be_visible()


def test_whoever_may_run_may_fire_and_pause_a_trigger(engine: Engine, site: Serving, open_page: Open) -> None:
    engine.triggers.add(Trigger("hourly", workflow=Order, every="1h", input={"order_id": 1}))
    create_token(site.service.store, ["admin"])
    page = open_page("/triggers?name=hourly")
    sign_in(page, site, "run")
    page.get_by_role("button", name="Fire now").click()
    expect(page.get_by_text("hourly was fired")).to_be_visible()
    assert [run.id.partition(":")[0] for run in engine.runs(workflow="Order")] == ["hourly"]
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Go on")).to_be_visible()


def test_a_trigger_shows_its_next_times_and_its_runs_and_fills_in_times_that_passed(
    engine: Engine, open_page: Open
) -> None:
    trigger = Trigger("hourly", workflow=Order, every="1h", start="2026-01-01T00:00:00Z", input={"order_id": 1})
    engine.triggers.add(trigger)
    fired = engine.triggers.fire("hourly")
    page = open_page("/workflows/Order")
    page.get_by_role("link", name="hourly").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator("time").first).to_have_attribute("title", re.compile(r" UTC$"))
    expect(dialog.get_by_role("link").filter(has_text=fired)).to_be_visible()
    dialog.get_by_role("button", name="Backfill").click()
    dialog.get_by_label("From").fill("2026-03-01T00:00")
    dialog.get_by_label("Until, without it").fill("2026-03-01T03:00")
    dialog.get_by_role("button", name="Which times?").click()
    expect(dialog.get_by_text("3 times have no run")).to_be_visible()
    dialog.get_by_role("button", name="Start 3 runs").click()
    expect(page.get_by_text("hourly starts the runs of 3 times")).to_be_visible()
    expect(dialog.get_by_role("link").filter(has_text="hourly:")).to_have_count(4)


def test_home_and_workers_say_what_nobody_serves(tmp_path: Path, open_page: Open) -> None:
    url = f"sqlite:///{tmp_path}/idle.db"
    builder = Builder("labels")
    builder.node("print", job=total, queue="printers")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "monday.txt").write_text("words")
    pipeline = Pipeline("blog", root=tmp_path)
    pipeline.stage("digest", input="in/{day}.txt", output="out/{day}.md", version="1")(digest_of)
    jobs = ["tests.browser.shop"]
    with (
        Engine(url, runner=None) as engine,
        running(url, worker={"queues": ["default"]}, jobs=jobs, pipelines=[pipeline]) as other,
    ):
        run = engine.start(builder)
        page = open_page("/", base_url=other.url)
        for address in ("/", "/workers"):
            page.goto(address)
            banner = page.get_by_role("region", name="Work that no worker serves")
            expect(banner).to_contain_text("no worker serves its queue 'printers'")
            expect(banner).to_contain_text("--queues printers")
        banner.get_by_role("link", name="labels").click()
        expect(page.get_by_role("row").filter(has_text=run.id)).to_be_visible()
        page.goto("/")
        page.get_by_role("button", name="1 stale").click()
        expect(page.get_by_role("dialog").get_by_text("monday", exact=True)).to_be_visible()
        with running(url, worker={"queues": ["printers"]}, jobs=jobs):
            page.goto("/workers")
            expect(page.get_by_text("printers × 1")).to_be_visible()
            run.wait(20)
        page.goto("/")
        expect(page.get_by_text("Pipelines")).to_be_visible()
        expect(page.get_by_role("region", name="Work that no worker serves")).to_have_count(0)


def test_every_number_of_home_leads_to_the_list_it_counts(
    engine: Engine, open_page: Open, signals: Callable[[str], None]
) -> None:
    engine.start(Order(order_id=1)).wait(20)
    signals("card-accepted")
    engine.start(Order(order_id=2)).wait(20)
    page = open_page("/")
    for name, count in (("1 failed", 1), ("2 started", 2), ("1 of them failed", 1)):
        page.get_by_role("link", name=re.compile(f"^(≥ )?{name}$")).click()
        page.wait_for_url("**/runs?**")
        expect(page.get_by_role("row")).to_have_count(count + 1)
        page.go_back()


def test_the_filter_bar_takes_times_ids_and_origins(engine: Engine, open_page: Open) -> None:
    run = engine.start(one_node("first")).wait(20)
    fork = engine.get(run.id).fork().wait(20)
    engine.start(one_node("second"), run_id="named-1").wait(20)
    page = open_page("/runs")
    rows = page.get_by_role("row")
    expect(rows).to_have_count(4)
    page.get_by_role("button", name="More").click()
    page.get_by_label("Forks of").fill(run.id)
    page.keyboard.press("Enter")
    expect(rows).to_have_count(2)
    expect(rows.nth(1)).to_contain_text(fork.id)
    page.get_by_role("button", name=f"Drop fork of {run.id}").click()
    page.get_by_label("Id begins with").fill("named")
    page.keyboard.press("Enter")
    expect(rows).to_have_count(2)
    expect(rows.nth(1)).to_contain_text("named-1")
    page.get_by_label("Created before").fill("2020-01-01T00:00")
    expect(page.get_by_text("No run matches")).to_be_visible()
    assert "until=2020" in page.url
    page.get_by_role("button", name="Show all runs").click()
    expect(rows).to_have_count(4)


def test_what_is_typed_while_the_list_is_asked_stays_and_nothing_is_searched_after_leaving(
    engine: Engine, open_page: Open
) -> None:
    engine.start(one_node("first")).wait(20)
    page = open_page("/runs")
    expect(page.get_by_role("row")).to_have_count(2)
    box = page.get_by_role("searchbox", name="Search runs")
    box.press_sequentially("firstfirst", delay=60)
    expect(box).to_have_value("firstfirst")
    page.wait_for_url("**q=firstfirst**")
    box.press_sequentially("x")
    page.get_by_role("link", name="Workers").click()
    page.wait_for_url("**/workers")
    expect(page.get_by_role("heading", name="Workers")).to_be_visible()
    page.wait_for_timeout(400)  # longer than the box waits
    assert page.url.endswith("/workers")


def test_choices_are_moved_by_arrow_keys(open_page: Open) -> None:
    page = open_page("/workflows/Order")
    chosen = page.get_by_role("radio", name="Graph", exact=True)
    chosen.focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("radio", name="Start")).to_be_focused()
    expect(page.get_by_role("radio", name="Start")).to_be_checked()
    page.keyboard.press("End")
    expect(page.get_by_role("radio", name="Runs")).to_be_checked()
    expect(page.get_by_text("It has never run")).to_be_visible()


def test_two_keys_lead_to_a_page_however_fast_they_are_pressed(open_page: Open) -> None:
    page = open_page("about:blank")
    page.route("**/api/v1/session", lambda route: None)  # who it is, the server says later
    page.goto("/")
    expect(page.get_by_role("heading", name="Home")).to_be_visible()
    for key, address in (("w", "/workflows"), ("t", "/triggers"), ("o", "/workers"), ("r", "/runs")):
        page.keyboard.down("g")
        page.keyboard.down(key)  # before g is up
        page.keyboard.up("g")
        page.keyboard.up(key)
        page.wait_for_url(f"**{address}")


def test_a_fire_whose_answer_was_lost_fires_once_and_the_next_one_again(engine: Engine, open_page: Open) -> None:
    engine.triggers.add(Trigger("hourly", workflow=Order, every="1h", input={"order_id": 1}))
    page = open_page("/triggers?name=hourly")

    def lose_the_answer(route: Route) -> None:
        route.fetch()
        route.abort()

    page.route("**/fire", lose_the_answer)
    fire = page.get_by_role("button", name="Fire now")
    fire.click()
    expect(page.get_by_text("cannot be reached").first).to_be_visible()
    page.unroute("**/fire")
    message = page.get_by_text("hourly was fired")
    for count in (1, 2):
        expect(message).to_have_count(0)  # it goes after a few seconds
        fire.click()
        expect(message).to_be_visible()
        assert len(list(engine.runs(workflow="Order"))) == count
