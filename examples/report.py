"""A nightly report. The problem: 50 shops are asked for yesterday's sales, each takes its time and some do not answer at
first; what one shop said must not be asked again when the process dies; and the statistics are heavy enough to stop
everything else in this process, and to be killed if they run away.

    fetch_1 ... fetch_50  ->  estimate  ->  render

The fetches are `async def`: they share one event loop, hold no thread, and all 50 are under way at once. The estimate has
`isolation="process"`: it has a core and a lock of its own, and its timeout really ends it.

Run it with `python -m examples.report`, or `stepwell run examples.report:nightly`. The shops are a server on loopback
that the process starts itself.
"""

from __future__ import annotations

import asyncio
import json
import random
import threading
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from rich.console import Console
from rich.table import Table

from examples.common import database
from stepwell import Builder, Context, Engine, Retry

SHOPS = 50


def nightly(day: str = "2026-01-15", shops: int = SHOPS) -> Builder:
    w = Builder("nightly-report")
    w.fan_out(
        range(1, shops + 1),
        job=fetch,
        name=lambda shop: f"fetch_{shop}",
        args=lambda shop: {"shop": shop, "day": day},
        retry=Retry(max_attempts=4, base_delay=0.05, retry_on=(ConnectionError, TimeoutError)),
        timeout=10,
    )
    w.node("estimate", job=estimate, isolation="process", timeout=60)
    w.node("render", job=render, args={"day": day})
    return w


async def fetch(shop: int, day: str) -> dict[str, Any]:
    """Where the shops are is looked up when it is asked, not kept in `args`: the run may go on in another process."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server().server_port)
    try:
        writer.write(f"GET /{day}/{shop} HTTP/1.0\r\n\r\n".encode())
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    finally:
        writer.close()
    status = head.partition(b"\r\n")[0].decode()
    if " 200 " not in status:
        raise ConnectionError(f"shop {shop} said {status!r}")
    sales: dict[str, Any] = json.loads(body)
    return sales


def estimate(ctx: Context) -> dict[str, float]:
    """How far the mean may be off, by drawing samples from the sales again and again. Seeded: a retry says the same."""
    sales = [each["sales"] for each in ctx.outputs.parents().values()]
    chance = random.Random(ctx.run_id)
    means = sorted(sum(chance.choices(sales, k=len(sales))) / len(sales) for _ in range(10_000))
    return {"mean": sum(sales) / len(sales), "low": means[250], "high": means[-250]}


def render(day: str, ctx: Context) -> str:
    found = ctx.outputs["estimate"]
    return f"{day}: {found['mean']:.0f} a shop, between {found['low']:.0f} and {found['high']:.0f}"


class Shops(ThreadingHTTPServer):
    """50 shops at one address. Every tenth is busy when it is first asked, and none answers before all were asked."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Shop)
        self.changed = threading.Condition()
        self.asked: set[str] = set()
        self.at_once = self.most_at_once = 0
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Shop(BaseHTTPRequestHandler):
    server: Shops

    def do_GET(self) -> None:
        shops, shop = self.server, int(self.path.rpartition("/")[2])
        with shops.changed:
            shops.at_once += 1
            shops.most_at_once = max(shops.most_at_once, shops.at_once)
            shops.changed.notify_all()
            # A run that goes on after a crash asks fewer: then nobody comes for a while.
            while shops.most_at_once < SHOPS and shops.changed.wait(0.5):
                pass
            shops.at_once -= 1
            busy = shop % 10 == 0 and self.path not in shops.asked
            shops.asked.add(self.path)
        self.send_response(503 if busy else 200)
        self.end_headers()
        self.wfile.write(json.dumps({"shop": shop, "sales": 1_000 + shop * 7919 % 500}).encode())

    def log_message(self, format: str, *args: Any) -> None: ...


@cache
def server() -> Shops:
    return Shops()


def main() -> None:
    with database() as path, Engine(f"sqlite:///{path}") as engine:
        run = engine.run(nightly(), run_id="nightly-2026-01-15")
        table = Table("node", "nodes", "where", "attempts")
        for word, where in (("fetch", "event loop"), ("estimate", "process"), ("render", "thread")):
            nodes = [node for node in run.nodes() if node.name.startswith(word)]
            table.add_row(word, str(len(nodes)), where, str(sum(len(node.attempts) for node in nodes)))
        Console(width=72).print(table)
        print(run.output("render"))
        print("requests under way at once:", server().most_at_once)


if __name__ == "__main__":
    main()
