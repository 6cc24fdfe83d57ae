"""Who looks at a page: what one may not do is not offered, and a session that ends leads back to the same address."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, Playwright, expect

from stepwell import Engine, Trigger
from stepwell.answers.scopes import Scope
from stepwell.server.access.tokens import Token, create_token, revoke_token
from stepwell.server.api import events
from stepwell.server.serving import Serving
from tests.browser import chromium
from tests.browser.shop import Gate, Order
from tests.engine.waiting import eventually

Open = Callable[..., Page]
ACTS = (
    *("Retry", "Resume", "Pause", "Cancel", "Run again", "Fork…", "Fork from here", "Replay…", "Delete…"),
    *("Start again with this input…", "All of these", "Start", "Fire now"),
)
"""Buttons and items of menus that change something."""


def sign_in(page: Page, token: str) -> None:
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("navigation", name="Pages")).to_be_visible()


def token_of(site: Serving, *scopes: Scope) -> tuple[str, Token]:
    return create_token(site.service.store, scopes, name=scopes[0])


def acts(page: Page) -> set[str]:
    """What is offered now."""
    names = page.locator("button:visible, [role=menuitem]:visible").all_inner_texts()
    return {name.strip() for name in names} & {*ACTS}


def are_offered(page: Page, names: set[str]) -> None:
    eventually(lambda: page.wait_for_timeout(20) or acts(page) == names, show=lambda: acts(page))


def test_what_one_may_not_do_is_not_offered(engine: Engine, site: Serving, open_page: Open) -> None:
    engine.triggers.add(Trigger(name="hourly", workflow=Order, every="1h", input={"order_id": 1}))
    failed = engine.start(Order(order_id=3)).wait(20)
    held = engine.start(Gate())
    site_tokens = {name: token_of(site, name)[0] for name in ("read", "run", "admin")}
    addresses = {
        "/runs": ("all of them", {"All of these"}),
        "/workflows/Gate": ("before", {"Start"}),
        "/workflows/Gate?tab=start": ("Gate", {"Start"}),
        "/triggers?name=hourly": ("has started", {"Pause", "Fire now"}),
        f"/runs/{failed.id}?node=charge": ("was declined", {"Retry", "Run again"}),
        f"/runs/{failed.id}?seq=3": ("Back to now", {"Fork from here"}),
        f"/runs/{held.id}": ("before", {"Pause", "Cancel"}),
    }
    in_menu = {"Fork…", "Replay…", "Start again with this input…"}
    for name, token in site_tokens.items():
        page = open_page("/runs")
        refused: list[str] = []
        page.on(
            "response", lambda answer, refused=refused: refused.append(answer.url) if answer.status == 403 else None
        )
        sign_in(page, token)
        for address, (text, offered) in addresses.items():
            page.goto(address)
            expect(page.get_by_text(text).filter(visible=True).first).to_be_visible()
            expect(page.get_by_label("Account of")).to_be_visible()  # it is known who looks
            are_offered(page, set() if name == "read" else offered)
        page.get_by_role("button", name="More").click()
        expect(page.get_by_role("menuitem", name="Compare with its origin")).to_be_visible()
        menu = {"read": set(), "run": in_menu, "admin": in_menu | {"Delete…"}}[name]
        are_offered(page, menu if name == "read" else menu | {"Pause", "Cancel"})
        assert not refused, "nothing is asked for that is refused"


def test_a_revoked_token_ends_what_is_open_and_another_leads_back(
    engine: Engine, site: Serving, open_page: Open, signals: Callable[[str], None]
) -> None:
    run = engine.start(Gate())
    text, token = token_of(site, "run")
    page = open_page(f"/runs/{run.id}?node=hold&tab=config")
    sign_in(page, text)
    expect(page.locator("[data-live=live]")).to_be_visible()
    address = page.url
    revoke_token(site.service.store, token.id)
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert page.url == address
    page.get_by_label("Token").fill(text)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("revoked")
    signals("gate-open")
    run.wait(20)
    sign_in(page, token_of(site, "read")[0])
    expect(page.get_by_role("tab", name="Config")).to_have_attribute("aria-selected", "true")
    expect(page.locator('[data-node="after"][data-status="COMPLETED"]')).to_be_visible()
    assert page.url == address


def test_signing_out_ends_the_streams_of_every_tab(engine: Engine, site: Serving, open_page: Open) -> None:
    run = engine.start(Gate())
    page = open_page(f"/runs/{run.id}")
    expect(page.locator("[data-live=live]")).to_be_visible()
    text, _ = token_of(site, "read")
    page.reload()
    sign_in(page, text)
    other = page.context.new_page()
    other.goto("/runs")
    for each in (page, other):
        expect(each.locator("[data-live=live]")).to_be_visible()
    page.bring_to_front()
    page.get_by_role("button", name="Account").click()
    page.get_by_role("menuitem", name="Sign out").click()
    for each in (page, other):
        expect(each.get_by_role("heading", name="Sign in")).to_be_visible()
    eventually(lambda: site.service.feed.streams == 0)
    assert [each["name"] for each in page.context.cookies()] == []


def test_a_run_that_is_deleted_while_it_is_shown_is_said_to_be_gone(
    engine: Engine, open_page: Open, signals: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "HEARTBEAT_SECONDS", 0.2)  # after which a stream looks whether its run is still there
    signals("card-accepted")
    run = engine.start(Order(order_id=1)).wait(20)
    page = open_page(f"/runs/{run.id}?node=charge")
    expect(page.locator("[data-live=live]")).to_be_visible()
    run.delete()
    expect(page.get_by_text("This run was deleted")).to_be_visible()
    page.reload()
    expect(page.get_by_text("There is no such run")).to_be_visible()
    page.get_by_role("link", name="Runs", exact=True).click()
    expect(page.get_by_text("No runs yet")).to_be_visible()


def test_eight_tabs_of_one_server_are_all_live(
    engine: Engine,
    site: Serving,
    playwright: Playwright,
    watch: Callable[[Page], Page],
    signals: Callable[[str], None],
    tmp_path: Path,
) -> None:
    """A browser has six connections to a server: with a stream for each tab the seventh would wait for ever."""
    run = engine.start(Gate())
    with chromium.window(tmp_path / "profile") as address:
        browser = playwright.chromium.connect_over_cdp(address, no_defaults=True)
        assert [page.url for page in browser.contexts[0].pages] == ["about:blank"], "it asks no other host"
        tabs: list[Page] = []
        for _ in range(8):
            tabs.append(watch(browser.contexts[0].new_page()))
            tabs[-1].goto(f"{site.url}/runs/{run.id}")
            is_shown(tabs[-1], "hold", "RUNNING")
        assert [tab.evaluate("document.hidden") for tab in tabs] == [True] * 7 + [False]
        eventually(lambda: site.service.feed.streams == 1, "hidden tabs keep their streams")
        signals("gate-open")
        run.wait(20)
        for tab in tabs:
            tab.bring_to_front()
            is_shown(tab, "after", "COMPLETED")
        eventually(lambda: site.service.feed.streams == 1)
        browser.close()


def is_shown(tab: Page, name: str, status: str) -> None:
    expect(tab.locator(f'[data-node="{name}"][data-status="{status}"]')).to_be_visible()
    expect(tab.locator("[data-live=live]")).to_be_visible()
