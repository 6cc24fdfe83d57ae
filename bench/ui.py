"""The web UI on large runs, in Chromium: how soon they open and can be moved, and what a thousand events a second cost it."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, CDPSession, Page, expect, sync_playwright

from stepwell import Builder, Engine
from tests.browser import chromium

from .http import serving
from .rows import Row

REAL = Path(__file__).parents[2] / "shared" / "realdags"
NODES = 10_000
ROUNDS = 5
SECONDS = 4
"""Of each look at a busy run."""
SHOWN = "[data-group], [data-node]"
TASKS = """window.tasks = [];
new PerformanceObserver((list) => window.tasks.push(...list.getEntries().map((entry) => entry.duration)))
  .observe({ type: 'longtask', buffered: true });"""
FRAMES = """(seconds) => new Promise((done) => {
  let frames = 0;
  const until = performance.now() + seconds * 1000;
  const next = () => { frames += 1; performance.now() < until ? requestAnimationFrame(next) : done(frames / seconds); };
  requestAnimationFrame(next);
})"""
OPEN = """() => [...document.querySelectorAll('[data-group]')].find((group) => {
  const { x, y, width, height } = group.getBoundingClientRect();
  return group.contains(document.elementFromPoint(x + width / 2, y + height / 2));
})?.click()"""
FREE = """() => {
  const frame = document.querySelector('[role=application]');
  const { left, top, width, height } = frame.getBoundingClientRect();
  for (let x = left + width - 80; x > left; x -= 12) for (let y = top + height - 20; y > top; y -= 12) {
    const there = document.elementFromPoint(x, y);
    if (frame.contains(there) && !there.closest('button, input')) return [x, y];
  }
}"""
"""Where there is no node to click, but something to drag."""
PLACE = "() => document.querySelector('[role=application] canvas + div').style.transform"
SEEN = """window.seen = {};
new MutationObserver(() => requestAnimationFrame(() => {
  for (const node of document.querySelectorAll('[data-node][data-status=COMPLETED]')) {
    window.seen[node.title.split(':')[0]] ??= Date.now();
  }
})).observe(document, { subtree: true, childList: true, attributes: true, attributeFilter: ['data-status'] });"""
"""When it was in sight that a node has completed, in milliseconds."""


def real_nodes() -> Builder:
    """Graphs of real pipelines beside each other, as often as it takes, each node with a name of its own."""
    files = sorted(REAL.glob("*.json"))
    builder, nodes, copy = Builder("real"), 0, 0
    while nodes < NODES:
        copy += 1
        for file in files:
            tasks = {task["id"]: task["parents"] for task in json.loads(file.read_text())["tasks"]}
            known: dict[str, str] = {}
            while len(known) < len(tasks) and nodes < NODES:
                for name, parents in tasks.items():
                    if name in known or nodes == NODES or not all(parent in known for parent in parents):
                        continue
                    before = [known[parent] for parent in parents]
                    label = f"{name} {file.stem.partition('-')[0]}{copy}"
                    known[name] = builder.node(label, job="bench.shapes:nothing", depends_on=before)
                    nodes += 1
    return builder


def wide(job: str, nodes: int = NODES) -> Builder:
    builder = Builder("wide")
    builder.fan_out(range(nodes), job=job, name=lambda number: f"n{number}")
    return builder


def paused(length: int) -> Builder:
    """A chain whose nodes end one after the other, with nothing between."""
    builder = Builder("paused")
    for number in range(length):
        builder.node(f"step{number}", job="bench.shapes:pause")
    return builder


def ui(folder: Path) -> list[Row]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium.find(), args=chromium.FLAGS)
        try:
            return [*opening(folder, browser), *working(folder, browser)]
        finally:
            browser.close()


def opening(folder: Path, browser: Browser) -> list[Row]:
    url = f"sqlite:///{folder}/opening.db"
    with Engine(url, runner=None) as engine:
        runs = {
            f"a fan of {NODES:,}": engine.start(wide("bench.shapes:one")).id,
            f"{NODES:,} differently named nodes of real graphs": engine.start(real_nodes()).id,
        }
    rows = []
    with serving(url, "--no-runner") as (address, _):
        for what, run in runs.items():
            opened, moved = [], []
            for _ in range(ROUNDS):
                with watched(browser, TASKS) as (page, _network):
                    began = time.perf_counter()
                    page.goto(f"{address}/runs/{run}")
                    expect(page.locator(SHOWN).first).to_be_visible(timeout=60_000)
                    opened.append(time.perf_counter() - began)
                    moved.append(longest_task_of_panning(page))
            seconds, task = statistics.median(opened), statistics.median(moved)
            rows += [
                Row(f"web UI: {what}, opened", "<= 2 s", f"{seconds:.2f} s", seconds <= 2),
                Row(f"web UI: {what}, panned: the longest task", "<= 100 ms", f"{task:.0f} ms", task <= 100),
            ]
    return rows


def longest_task_of_panning(page: Page) -> float:
    """In milliseconds, near and from afar, by the mouse and its wheel, the first group in sight open; 0 if none takes 50."""
    page.evaluate(OPEN)
    page.wait_for_timeout(800)
    page.evaluate("window.tasks.length = 0")
    drag(page)
    page.get_by_role("button", name="All of it (0)").click()
    drag(page)
    page.wait_for_timeout(200)  # tasks are reported once they have ended
    return float(page.evaluate("Math.max(0, ...window.tasks)"))


def drag(page: Page) -> None:
    before = page.evaluate(PLACE)
    x, y = page.evaluate(FREE)
    page.mouse.move(x, y)
    page.mouse.down()
    for step in range(40):
        page.mouse.move(x - 12 * step, y - 4 * (step % 20))
    page.mouse.up()
    page.evaluate(FRAMES, 0.1)
    assert page.evaluate(PLACE) != before, "the graph is moved"
    for step in range(10):
        page.mouse.wheel(0, -120 if step % 2 else 120)


def working(folder: Path, browser: Browser) -> list[Row]:
    url = f"sqlite:///{folder}/working.db"
    with serving(url, "bench.shapes") as (address, _), Engine(url, runner=None) as engine:
        return [*busy(engine, address, browser), latency(engine, address, browser)]


def busy(engine: Engine, address: str, browser: Browser) -> list[Row]:
    run = engine.start(wide("bench.shapes:moment", 2 * NODES))
    frames, sizes, rates = [], [], []
    events = 0
    with watched(browser) as (page, network):

        def count(_: Any) -> None:
            nonlocal events
            events += 1

        network.on("Network.eventSourceMessageReceived", count)
        page.goto(f"{address}/runs/{run.id}")
        expect(page.locator("[data-live=live]")).to_be_visible()
        for _ in range(ROUNDS):
            before, began = events, time.perf_counter()
            frames.append(float(page.evaluate(FRAMES, SECONDS)))
            rates.append((events - before) / (time.perf_counter() - began))
            network.send("HeapProfiler.collectGarbage")
            sizes.append(network.send("Runtime.getHeapUsage")["usedSize"] / 2**20)
        run.cancel()
    rate, fps, grown = statistics.median(rates), statistics.median(frames), sizes[-1] - sizes[0]
    return [
        Row(
            f"web UI: a fan of {2 * NODES:,} while it runs, its graph open",
            ">= 30 frames/s at 1,000 events/s",
            f"{fps:.0f} frames/s at {rate:,.0f} events/s",
            fps >= 30 and rate >= 1_000,
        ),
        Row(
            f"web UI: its memory over {sum(rates) / len(rates) * SECONDS * (ROUNDS - 1):,.0f} events",
            "flat (< 10 MB)",
            f"{grown:+.1f} MB, {sizes[-1]:.0f} MB in the end",
            grown < 10,
        ),
    ]


def latency(engine: Engine, address: str, browser: Browser) -> Row:
    run = engine.start(paused(ROUNDS + 2))
    with watched(browser, SEEN) as (page, _network):
        page.goto(f"{address}/runs/{run.id}")
        expect(page.locator("[data-live=live]")).to_be_visible()
        run.wait(60)
        expect(page.get_by_text(f"{ROUNDS + 2} of {ROUNDS + 2}")).to_be_visible()
        seen = page.evaluate("window.seen")
    ends = {node.name: node.attempts[-1].ended_at for node in run.nodes()}
    late = [seen[name] - at * 1_000 for name, at in ends.items() if name in seen and at is not None][1 : ROUNDS + 1]
    middle = statistics.median(late)
    return Row(
        "web UI: commit to pixel, median", "<= 300 ms", f"{middle:.0f} ms", middle <= 300 and len(late) == ROUNDS
    )


@contextmanager
def watched(browser: Browser, *scripts: str) -> Iterator[tuple[Page, CDPSession]]:
    """A page in a profile of its own, with nothing in its cache."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    for script in scripts:
        context.add_init_script(script)
    page = context.new_page()
    network = context.new_cdp_session(page)
    network.send("Network.enable")
    try:
        yield page, network
    finally:
        context.close()
