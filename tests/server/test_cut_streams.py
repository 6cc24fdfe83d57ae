"""A client whose stream is cut goes on where it was. One that has heard enough closes it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from stepwell import Builder, Client
from stepwell.client import events as client_events
from stepwell.client import remote
from stepwell.engine.following import Event
from tests.engine.waiting import eventually
from tests.server.running import SECONDS, running
from tests.stores.postgres.proxy import CUT, Proxy

LENGTH = 3

begun, go_on = threading.Semaphore(0), threading.Semaphore(0)


def hold() -> None:
    begun.release()
    assert go_on.acquire(timeout=SECONDS)


def held_chain() -> Builder:
    """Each node ends when the test lets it."""
    builder = Builder("held")
    for place in range(LENGTH):
        builder.node(f"n{place}", job=f"{__name__}:hold", depends_on=[f"n{place - 1}"] if place else [])
    return builder


Follow = Callable[[str, str, Callable[[Event], bool]], None]
"""Follow a run at this address, until what is called with each event returns True."""


def follow_by_iterating(url: str, run: str, ends: Callable[[Event], bool]) -> None:
    with Client(url) as client:
        for event in client.events(run):
            if ends(event):
                return


def follow_on_a_loop(url: str, run: str, ends: Callable[[Event], bool]) -> None:
    async def program() -> None:
        async with Client(url) as client:
            async for event in client.events(run):
                if ends(event):
                    return

    asyncio.run(program())


@pytest.fixture(scope="module")
def through(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, Proxy]]:
    """The address of a server with a runner, an address that passes a proxy, and the proxy."""
    url = f"sqlite:///{tmp_path_factory.mktemp('cut')}/cut.db"
    with running(url, worker={}, jobs=[__name__]) as serving:
        proxy = Proxy(urlsplit(serving.url).port or 0)
        yield serving.url, f"http://127.0.0.1:{proxy.port}", proxy
        proxy.close()


@contextmanager
def following(follow: Follow, url: str, run: str, ends: Callable[[Event], bool]) -> Iterator[None]:
    thread = threading.Thread(target=follow, args=(url, run, ends), daemon=True)
    thread.start()
    yield
    thread.join(SECONDS)
    assert not thread.is_alive()


class Cut:
    """Cuts each stream at the next event that passes, until `back` is set."""

    def __init__(self, proxy: Proxy) -> None:
        self.was_cut, self.back = threading.Event(), threading.Event()
        proxy.on_reply = self._drop

    def _drop(self, data: bytes) -> float:
        if self.back.is_set() or b"data: " not in data:
            return 0.0
        self.was_cut.set()
        return CUT


@pytest.mark.parametrize("follow", [follow_by_iterating, follow_on_a_loop])
def test_each_entry_of_a_journal_is_heard_once_wherever_the_stream_is_cut(
    through: tuple[str, str, Proxy], follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_events, "AGAIN_SECONDS", 0.05)
    address, by_proxy, proxy = through
    heard: list[Any] = []

    def ends(event: Event) -> bool:
        heard.append(event.data)
        return bool(event.data["kind"] == "run" and event.data["status"] == "COMPLETED")

    with Client(address) as direct:
        run = direct.start(held_chain())
        with following(follow, by_proxy, run.id, ends):
            for _ in range(LENGTH):
                assert begun.acquire(timeout=SECONDS)
                eventually(lambda: len(heard) >= run.row.seq)
                cut = Cut(proxy)
                go_on.release()
                assert cut.was_cut.wait(SECONDS)
                cut.back.set()
        assert [entry["seq"] for entry in heard] == list(range(1, run.row.seq + 1))


def test_who_has_waited_on_a_loop_leaves_no_stream_open(
    through: tuple[str, str, Proxy], monkeypatch: pytest.MonkeyPatch
) -> None:
    address, _, _ = through
    opened: list[Any] = []
    follow = remote.follow_on_loop
    monkeypatch.setattr(remote, "follow_on_loop", lambda *asked: opened.append(follow(*asked)) or opened[-1])

    async def program() -> None:
        async with Client(address) as client:
            run = await client.start(held_chain())
            waits = asyncio.ensure_future(run.wait(SECONDS))
            for _ in range(LENGTH):
                assert await asyncio.to_thread(begun.acquire, timeout=SECONDS)
                go_on.release()
            await waits
            assert opened
            assert all(stream.ag_frame is None for stream in opened), "one is still at a yield"

    asyncio.run(program())
