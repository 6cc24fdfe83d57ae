"""A real server with a worker, and Chromium. A test fails if a page does what its policy forbids, or writes to its console."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, expect, sync_playwright

from stepwell import Engine
from stepwell.server.serving import Serving
from stepwell.server.web_ui import BUILT
from stepwell.stores import open_store
from tests.browser import chromium, shop
from tests.server.running import serving_of

SECONDS = 45
"""How long one waits at most for what a page shows, on a machine that others keep busy."""
WATCH = """
document.addEventListener('securitypolicyviolation', (event) =>
  console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`));
"""
EXPECTED = ("Failed to load resource",)
"""What Chromium itself writes when the server refuses, which is what some tests are about."""

THROTTLE = float(os.environ.get("STEPWELL_TEST_THROTTLE", "1"))
"""How many times as slow the processor of each page is."""
LATENCY_MILLISECONDS = float(os.environ.get("STEPWELL_TEST_LATENCY", "0"))
"""How much later each page gets what it asks for."""


@pytest.fixture(scope="module")
def playwright() -> Iterator[Playwright]:
    """Not for the whole session: as long as Playwright is open, the thread of the tests has a running event loop, and tests of
    other files that begin one of their own would fail."""
    assert (BUILT / "index.html").exists(), "the web UI is not built: run `make ui`"
    expect.set_options(timeout=SECONDS * 1_000)
    with sync_playwright() as playwright:
        yield playwright


@pytest.fixture(scope="module")
def browser(playwright: Playwright) -> Iterator[Browser]:
    browser = playwright.chromium.launch(executable_path=chromium.find(), args=chromium.FLAGS)
    yield browser
    browser.close()


@pytest.fixture
def watch() -> Iterator[Callable[[Page], Page]]:
    """Whatever this page writes to its console as an error, or its policy forbids, fails the test."""
    problems: list[str] = []

    def watch(page: Page) -> Page:
        page.set_default_timeout(SECONDS * 1_000)
        if THROTTLE > 1 or LATENCY_MILLISECONDS:
            chromium.slow_down(page, THROTTLE, LATENCY_MILLISECONDS)
        page.add_init_script(WATCH)
        page.on("pageerror", lambda error: problems.append(f"{page.url}: {error}"))
        page.on(
            "console",
            lambda message: (
                problems.append(f"{page.url}: {message.text}")
                if message.type == "error" and not message.text.startswith(EXPECTED)
                else None
            ),
        )
        return page

    yield watch
    assert not problems, "\n".join(problems)


@pytest.fixture
def signals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Lets a body go on that waits for this name."""
    folder = tmp_path / "signals"
    folder.mkdir()
    monkeypatch.setenv("STEPWELL_BROWSER_FOLDER", str(folder))
    return lambda name: (folder / name).touch()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/shop.db"


@pytest.fixture
def site(url: str, signals: Callable[[str], None]) -> Iterator[Serving]:
    """A server that works on the workflows of `shop`."""
    store = open_store(url)
    try:
        with serving_of(store, worker={"workflows": shop.WORKFLOWS}, jobs=["tests.browser.shop"]) as serving:
            yield serving
            for name in (
                "gate-open",
                "truck-back",
                "one-goes",
                "two-goes",
                "chat-over",
            ):  # so that nothing is waited for
                signals(name)
    finally:
        store.close()


@pytest.fixture
def engine(url: str, site: Serving) -> Iterator[Engine]:
    """Starts runs that the server works on."""
    with Engine(url, workflows=shop.WORKFLOWS, jobs=["tests.browser.shop"], runner=None) as engine:
        yield engine


@pytest.fixture
def open_page(browser: Browser, site: Serving, watch: Callable[[Page], Page]) -> Iterator[Callable[..., Page]]:
    """Opens an address of the server, in a profile of its own."""
    contexts: list[BrowserContext] = []

    def open_page(path: str = "/", **options: Any) -> Page:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, "base_url": site.url, **options})
        contexts.append(context)
        page = watch(context.new_page())
        page.goto(path)
        return page

    yield open_page
    for context in contexts:
        context.close()
