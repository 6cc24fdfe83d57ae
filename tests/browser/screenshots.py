"""Write pictures of every page into a folder: `make ui WHAT=screenshots`.

A real server works on the workflows of sample.py, and Chromium shows each page at two widths, light and dark. A page that can
be scrolled sideways at 390 pixels is reported, and the script ends with 1.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from stepwell import Engine, Run
from stepwell.server.access.tokens import create_token
from stepwell.stores import open_store
from tests.browser import sample
from tests.browser.chromium import FLAGS, find
from tests.server.running import serving_of

SIZES = {1280: 800, 390: 844}
WAIT = 900
"""Milliseconds for what moves into its place."""


def pages(runs: dict[str, Run]) -> dict[str, str]:
    """Addresses by the name of their pictures."""
    of = {name: f"/runs/{run.id}" for name, run in runs.items()}
    charge = "node=charge"
    return {
        "home": "/",
        "audit-log": "/audit-log",
        "runs": "/runs",
        "runs-failed": "/runs?status=%5B%22FAILED%22%5D",
        "runs-none": "/runs?q=nothing-like-this",
        "run-graph": of["retried"],
        "run-failed": of["failed"],
        "run-failed-why": f"{of['failed']}?{charge}",
        "run-upstream-why": f"{of['failed']}?node=ship",
        "run-failed-attempts": f"{of['failed']}?{charge}&tab=attempts",
        "run-failed-proof": f"{of['failed']}?{charge}&tab=proof",
        "run-output": f"{of['retried']}?node=validate&tab=output",
        "run-input": f"{of['failed']}?{charge}&tab=input",
        "run-effects": f"{of['retried']}?node=validate&tab=effects",
        "run-node-logs": f"{of['retried']}?node=validate&tab=logs",
        "run-overview": f"{of['failed']}?view=overview",
        "run-config": f"{of['report']}?node=total&tab=config",
        "run-timeline": f"{of['retried']}?view=timeline",
        "run-table": f"{of['failed']}?view=table",
        "run-logs": f"{of['slow']}?view=logs",
        "run-past": f"{of['failed']}?seq=6",
        "run-past-node": f"{of['failed']}?seq=6&{charge}",
        "run-past-table": f"{of['failed']}?view=table&seq=6",
        "run-fan": of["fan"],
        "run-fan-timeline": f"{of['fan']}?view=timeline",
        "run-fan-table": f"{of['fan']}?view=table",
        "run-skipped": of["skipped"],
        "run-skipped-why": f"{of['skipped']}?node=inspect",
        "run-skipped-config": f"{of['skipped']}?node=review&tab=config",
        "run-skipped-table": f"{of['skipped']}?view=table",
        "run-skipped-timeline": f"{of['skipped']}?view=timeline",
        "run-reviewed": of["reviewed"],
        "run-paused": of["paused"],
        "run-slow": of["slow"],
        "run-slow-node": f"{of['slow']}?node=train",
        "run-slow-timeline": f"{of['slow']}?view=timeline",
        "run-lost": f"{of['lost']}?node=train&tab=attempts",
        "run-fork": of["fork"],
        "run-missing": "/runs/no-such-run",
        "compare": f"/compare/{runs['failed'].id}/{runs['fork'].id}",
        "compare-node": f"/compare/{runs['failed'].id}/{runs['fork'].id}?node=charge",
        "compare-times": f"/compare/{runs['failed'].id}/{runs['fork'].id}?view=times",
        "compare-outputs": f"/compare/{runs['failed'].id}/{runs['fork'].id}?view=nodes&node=validate&outputs=true",
        "workflows": "/workflows",
        "workflow": "/workflows/Checkout",
        "workflow-branch": "/workflows/Claim",
        "compare-branch": f"/compare/{runs['skipped'].id}/{runs['reviewed'].id}",
        "workflow-start": "/workflows/nightly-report?tab=start",
        "workflow-runs": "/workflows/Checkout?tab=runs",
        "workflow-versions": "/workflows/nightly-report?tab=versions",
        "triggers": "/triggers",
        "trigger": "/triggers?name=report-nightly",
        "workers": "/workers",
    }


def opened(runs: dict[str, Run]) -> dict[str, tuple[str, Callable[[Page], None]]]:
    """What an action opens, by the name of its picture: the address it begins at, and the action."""

    def press(key: str) -> Callable[[Page], None]:
        return lambda page: page.keyboard.press(key)

    def click(*names: str) -> Callable[[Page], None]:
        def click(page: Page) -> None:
            for name in names:
                page.get_by_role("button", name=name, exact=True).or_(page.get_by_role("menuitem", name=name)).click()

        return click

    failed = f"/runs/{runs['failed'].id}"
    return {
        "palette": ("/", press("Control+k")),
        "help": ("/runs", press("?")),
        "runs-more": ("/runs", click("More")),
        "trigger-backfill": ("/triggers?name=poll-orders", click("Backfill…")),
        "runs-bulk": ("/runs?status=%5B%22FAILED%22%5D", click("All of these", "Retry what is listed…")),
        "run-retry": (failed, click("Retry")),
        "run-fork": (failed, click("More", "Fork…")),
        "run-replay": (f"/runs/{runs['retried'].id}", click("More", "Replay…", "Replay")),
        "run-delete": (failed, click("More", "Delete…")),
        "sign-in": ("/runs", sign_out),
    }


def nothing(page: Page) -> None:
    """Of pages that are shown as they open."""


def sign_in(context: BrowserContext, token: str) -> None:
    """A session of this context, without the page that asks for the token."""
    answer = context.request.post("/api/v1/session", headers={"Authorization": f"Bearer {token}"})
    assert answer.ok, answer.text()


def sign_out(page: Page) -> None:
    page.context.clear_cookies()
    page.reload()


class Site(NamedTuple):
    url: str
    runs: dict[str, Run]
    token: str
    """Since there is one, the server asks for it."""


@contextmanager
def sample_site(folder: Path) -> Iterator[Site]:
    """A server with the sample runs, the slow one still running, and a pipeline."""
    url = f"sqlite:///{folder}/sample.db"
    store = open_store(url)
    jobs = ["tests.browser.sample"]
    try:
        with (
            serving_of(
                store,
                worker={"workflows": sample.WORKFLOWS, "queues": ["default"]},
                jobs=jobs,
                pipelines=[sample.blog(folder / "blog")],
            ) as serving,
            Engine(url, workflows=sample.WORKFLOWS, jobs=jobs, runner=None) as engine,
            sample.filled(engine, url) as runs,
        ):
            yield Site(serving.url, runs, create_token(store, ["admin"], name="Ada")[0])
    finally:
        store.close()


def overflow(page: Page) -> int:
    """By how many pixels the page is wider than its window."""
    width: int = page.evaluate(
        "Math.max(document.documentElement.scrollWidth, document.querySelector('main')?.scrollWidth ?? 0) - innerWidth"
    )
    return width


def shoot(browser: Browser, site: Site, only: str, folder: Path) -> list[str]:
    """Write the pictures; what is wider than its window."""
    views = {name: (address, nothing) for name, address in pages(site.runs).items()} | opened(site.runs)
    wide = []
    for width, height in SIZES.items():
        for scheme in ("light", "dark"):
            context = browser.new_context(
                base_url=site.url,
                viewport={"width": width, "height": height},
                color_scheme="dark" if scheme == "dark" else "light",
                reduced_motion="reduce",
            )
            sign_in(context, site.token)
            page = context.new_page()
            for name, (address, action) in views.items():
                if not name.startswith(only):
                    continue
                page.goto(address)
                page.wait_for_timeout(WAIT)
                action(page)
                page.wait_for_timeout(WAIT if action is not nothing else 0)
                page.screenshot(path=folder / f"{name}-{width}-{scheme}.png")
                if (by := overflow(page)) > 0:
                    wide.append(f"{address} at {width} pixels: {by} pixels too wide")
            context.close()
    return wide


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("build/screenshots"))
    parser.add_argument("--only", default="", help="pages whose names begin so")
    parser.add_argument("--serve", action="store_true", help="serve the sample until Enter, and print addresses")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sample_site(Path(folder)) as site:
        if options.serve:
            print(*(f"{name} {site.url}{address}" for name, address in pages(site.runs).items()), sep="\n")
            print(f"token {site.token}", flush=True)
            sys.stdin.readline()
            return 0
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=find(), args=FLAGS)
            wide = shoot(browser, site, options.only, options.folder)
            browser.close()
    print(options.folder)
    print(*wide, sep="\n", file=sys.stderr)
    return 1 if wide else 0


if __name__ == "__main__":
    sys.exit(main())
