"""The flow of the source document, end to end from its file: fetch, two models at once, together, notify; among servers that
are busy, slow, reset connections, redirect to private addresses or change the address of their name."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stepwell import Engine
from stepwell.define.document import Document
from stepwell.engine.reports.replay import replay_cassette
from stepwell.history.replay.loading import load_cassette
from tests.engine.waiting import eventually
from tests.handlers.flow import FILE, KEY, PRIVATE, PUBLIC, Names, handlers
from tests.handlers.servers import Asked, Server, answer
from tests.handlers.test_llm import said

ROOT = Path(__file__).parents[2]


class Outside:
    """Every server of the flow, on one port of the public address."""

    def __init__(self) -> None:
        self.mended = False
        self.hold = threading.Event()
        self.hold.set()
        self._met: set[str] = set()
        self.public = Server(self.respond, PUBLIC)
        self.private = Server(lambda asked: answer(200, b"private"), PRIVATE, self.public.port)

    def respond(self, asked: Asked) -> Any:
        path = asked.path
        if path == "/page":
            return answer(429, Retry_After="1") if self._first(path) else answer(200, {"text": "a long story"})
        if path == "/link":
            target = "/linked" if self.mended else f"http://{PRIVATE}:{self.public.port}/secret"
            return answer(302, Location=target)
        if path == "/llm/chat/completions":
            assert asked.headers["authorization"] == f"Bearer {KEY}"
            prompt = asked.json()["messages"][-1]["content"]
            if prompt.startswith("Title"):
                return None if self._first("title") else said("A story")
            self.hold.wait(30)
            time.sleep(0.2)
            return said(f"It is {len(prompt)} long.")
        return answer(200, {"path": path})

    def _first(self, what: str) -> bool:
        return what not in self._met and not self._met.add(what)  # type: ignore[func-returns-value]

    def asked(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for each in self.public.asked:
            prompt = each.json()["messages"][-1]["content"].split(":")[0] if "llm" in each.path else ""
            found[prompt or each.path] += 1
        return found


@pytest.fixture
def outside() -> Iterator[Outside]:
    made = Outside()
    with made.public, made.private:
        yield made
    made.hold.set()


def outputs(run: Any) -> dict[str, Any]:
    return {node.name: run.output(node.name) for node in run.nodes() if str(node.status) == "COMPLETED"}


def test_it_fails_is_retried_repeats_only_what_failed_and_is_replayed_offline(outside: Outside, tmp_path: Path) -> None:
    port, names = outside.public.port, Names()
    known, cassette = handlers(port, names), tmp_path / "flow.cassette.json"
    with Engine(f"sqlite:///{tmp_path}/runs.db", handlers=known) as engine:
        run = engine.start(Document.load(FILE, known), input={"port": port}).wait(60)
        assert str(run.status) == "FAILED"
        tries = {node.name: [str(each.status) for each in node.attempts] for node in run.nodes()}
        assert tries == {
            "fetch": ["FAILED", "COMPLETED"],
            "summary": ["COMPLETED"],
            "title": ["FAILED", "COMPLETED"],
            "link": ["FAILED"],
            "mirror": ["COMPLETED"],
            "together": [],
            "notify": [],
        }
        assert f"{PRIVATE} may not be reached" in run.node("link").error.message
        first, second = run.node("fetch").attempts
        assert second.started_at - first.ended_at >= 1.0
        before = outside.asked()

        outside.mended = True
        run.retry()
        run.wait(60).check()
        assert outside.asked() - before == {"/link": 1, "/linked": 1, "/chat/messages": 1}
        final = outputs(run)
        assert final["together"]["result"]["title"] == "A story"
        assert final["mirror"]["result"] == {"path": "/mirror"}
        assert names.asked.count("rebound.test") == 1
        run.export(cassette)
    assert outside.private.connections == 0
    for path in tmp_path.iterdir():
        assert path.is_dir() or KEY.encode() not in path.read_bytes()

    # Offline: nobody listens any more, and here are no services, no secrets and no resolver.
    for server in (outside.public, outside.private):
        server.__exit__()
    asked = len(outside.public.asked)
    report = replay_cassette(load_cassette(cassette))
    assert len(report.executed) == 7
    assert report.stubbed == {}
    assert len(outside.public.asked) == asked


def test_it_is_killed_and_resumed(outside: Outside, tmp_path: Path) -> None:
    """The worker dies while one model is thinking and the other has answered: what was done is not asked for again."""
    outside.mended = True
    outside.hold.clear()
    port, database = outside.public.port, tmp_path / "runs.db"
    words = [sys.executable, "-m", "tests.handlers.flow", str(database), str(port), "flow-1"]
    worker = subprocess.Popen(words, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
    try:
        known = handlers(port, Names())
        eventually(lambda: outside.asked()["Summarise"] == 1 and outside.asked()["Title"] == 2)
        with Engine(f"sqlite:///{database}", handlers=known, runner=None) as looking:
            run = looking.get("flow-1")
            eventually(lambda: {"title", "link", "mirror"} <= set(outputs(run)))
        worker.send_signal(signal.SIGKILL)
        worker.wait(10)
        before = outside.asked()
        outside.hold.set()
        with Engine(f"sqlite:///{database}", handlers=known) as engine:
            run = engine.adopt("flow-1").wait(60)
            assert str(run.status) == "COMPLETED"
            assert [str(each.status) for each in run.node("summary").attempts] == ["LOST", "COMPLETED"]
            assert outside.asked() - before == {"Summarise": 1, "/chat/messages": 1}
            assert len(run.replay().executed) == 7
    finally:
        outside.hold.set()
        if worker.poll() is None:
            worker.kill()
            worker.wait(10)
