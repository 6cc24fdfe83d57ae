"""Where Chromium is, and how it is started."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page

from tests.engine.waiting import eventually

ROOT = Path(__file__).parents[2]
LISTENING = re.compile(r"DevTools listening on (\S+)\n")
FLAGS = [
    *("--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-quic", "--no-first-run"),
    *(["--no-sandbox"] if os.geteuid() == 0 else []),
]


def find() -> str:
    """The path of Chromium; a RuntimeError says what to do where there is none."""
    found = subprocess.run([ROOT / "scripts" / "chromium"], capture_output=True, text=True, check=False)
    if found.returncode:
        raise RuntimeError(found.stderr.strip().splitlines()[-1])
    return found.stdout.strip()


def slow_down(page: Page, rate: float, latency_milliseconds: float = 0) -> None:
    """Show the page as on a machine whose processor is `rate` times as slow, and whose network answers so much later."""
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setCPUThrottlingRate", {"rate": rate})
    if latency_milliseconds:
        unlimited = {"downloadThroughput": -1, "uploadThroughput": -1}
        session.send("Network.enable")
        session.send(
            "Network.emulateNetworkConditions", {"offline": False, "latency": latency_milliseconds, **unlimited}
        )


@contextmanager
def window(profile: Path) -> Iterator[str]:
    """A window as people have it, in which one tab is in sight and the others are hidden: where to connect to it. Of the pages
    of a browser that Playwright starts, each believes that it is in sight."""
    # Without an address it would open the start page of its distribution, which is on another host, while one connects to it.
    address = "about:blank"
    command = [find(), *FLAGS, "--headless", "--remote-debugging-port=0", f"--user-data-dir={profile}", address]
    log = profile.parent / "chromium.log"
    # A file: it would wait for ever for somebody who reads a full pipe.
    with log.open("w") as written, subprocess.Popen(command, stderr=written, stdout=written) as process:
        try:
            eventually(lambda: LISTENING.search(log.read_text()), "Chromium does not listen", seconds=30)
            yield str(LISTENING.findall(log.read_text())[0])
        finally:
            process.terminate()
