"""`stepwell ui` and `stepwell demo`: the address of the web UI, and a browser that opens it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from stepwell import Client, Document
from stepwell.cli import web
from stepwell.server import web_ui
from stepwell.server.web_ui import is_built
from tests.cli.conftest import Shop
from tests.server.running import running


@contextmanager
def serving(shop: Shop, *words: str, **environment: str) -> Iterator[tuple[str, list[str]]]:
    """A command that prints an address and serves it, and its lines on stderr once it has ended by Ctrl-C."""
    process = shop.start(*words, **environment)
    assert process.stdout is not None
    lines: list[str] = []
    try:
        yield process.stdout.readline().strip(), lines
    finally:
        process.send_signal(signal.SIGINT)
        lines += shop.end(process, code=0).err.splitlines()


def browser_of(shop: Shop) -> dict[str, str]:
    """A browser that writes down what it is to open."""
    program = shop.folder / "browser"
    program.write_text(
        f'#!/bin/sh\necho "$1" > {shop.folder}/opened.new\nmv {shop.folder}/opened.new {shop.folder}/opened\n'
    )
    program.chmod(0o755)
    return {"BROWSER": f"{program} %s"}


def test_the_page_of_a_run_is_opened_by_a_server_without_a_runner(shop: Shop) -> None:
    shop("run", "shop:Again", "--run-id", "again@7")
    with serving(shop, "ui", "again", **browser_of(shop)) as (address, lines):
        assert address.startswith("http://127.0.0.1:")
        assert address.endswith("/runs/again%407")
        shop.until((shop.folder / "opened").exists)
        assert (shop.folder / "opened").read_text() == f"{address}\n"
        assert httpx.get(address).headers["content-type"].startswith("text/html")
        base = address.partition("/runs")[0]
        assert httpx.get(f"{base}/api/v1/runs/again%407").json()["status"] == "COMPLETED"
        assert httpx.get(f"{base}/api/v1/workers").json()["items"] == []
    assert f"at {base}, no runner" in lines[0]


def test_a_server_that_is_named_is_opened_and_none_is_started(shop: Shop, tmp_path: Path) -> None:
    with running(f"sqlite:///{tmp_path}/other.db") as other, Client(other.url) as client:
        node = {"id": "x", "handler": "transform", "config": {"template": 1}}
        run = client.start(Document({"name": "one", "nodes": [node]}))
        assert shop("ui", "--server", f"{other.url}/", "--no-browser").out == f"{other.url}/\n"
        opened = shop("ui", run.id[:12], "--server", other.url, **browser_of(shop))
        assert opened.out == f"{other.url}/runs/{run.id}\n"
        assert (shop.folder / "opened").read_text() == opened.out
        assert "no run" in shop("ui", "nowhere", "--server", other.url, "--no-browser", code=3).err


def test_a_store_that_is_not_there_is_not_made(shop: Shop) -> None:
    for words in ((), ("--store", "sqlite:///none.db")):
        assert "there is no such file" in shop("ui", *words, code=4).err
    assert not (shop.folder / ".stepwell").exists()
    assert not (shop.folder / "none.db").exists()


def test_a_browser_that_does_not_open_is_no_failure(shop: Shop, tmp_path: Path) -> None:
    with running(f"sqlite:///{tmp_path}/other.db") as other:
        opened = shop("ui", "--server", other.url, BROWSER="/bin/false", PATH="/nowhere")
        assert opened.out == f"{other.url}/\n"
        assert "open the address above" in opened.err
        assert "cannot be reached" in shop("ui", "--server", "http://127.0.0.1:1", "--no-browser", code=4).err


def test_it_is_said_where_the_ui_is_and_that_it_is_not_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not is_built(tmp_path)
    (tmp_path / "index.html").touch()
    assert is_built(tmp_path)
    with running(f"sqlite:///{tmp_path}/pages.db") as server:
        for built, lines in ((True, 1), (False, 2)):
            monkeypatch.setattr(web_ui, "is_built", lambda built=built: built)
            web.announce(server)
            told = capsys.readouterr().err.splitlines()
            assert len(told) == lines
            assert told[0].startswith("serving the web UI and the API of sqlite:///")
            assert f" at {server.url};" in told[0]
    assert "make ui" in told[1]


def test_the_sample_shows_what_the_pages_are_for_and_leaves_nothing(shop: Shop, tmp_path: Path) -> None:
    with serving(shop, "demo", "--no-browser", TMPDIR=str(tmp_path)) as (address, lines), Client(address) as client:
        (folder,) = tmp_path.glob("stepwell-demo-*")
        assert client.get("purchase-7").wait(60).status == "COMPLETED"
        assert len(client.get("purchase-7").node("charge").attempts) == 3
        photos = client.get("photos").wait(60)
        assert (photos.status, photos.node("shrink_13").status) == ("FAILED", "FAILED")
        assert sum(node.status == "COMPLETED" for node in photos.nodes()) == 39
        failed = client.get("price-list").wait(60)
        assert f"touch {folder.resolve()}/prices.csv" in str(failed.why())
        (folder / "prices.csv").touch()
        failed.retry()
        assert failed.wait(60).status == "COMPLETED"
        training = client.get("training")
        shop.until(lambda: training.node("train").progress is not None)
        assert "loss" in " ".join(line.message for line in training.logs("train"))
        api = f"{address}api/v1"
        assert set(httpx.get(f"{api}/workflows/newsletter").json()["input"]["properties"]) >= {"subject", "tone"}
        assert [each["name"] for each in httpx.get(f"{api}/triggers").json()["items"]] == ["every-minute"]
        assert client.get("newsletter-1").wait(60).output("letter")["result"].startswith("Hello")
    assert not folder.exists()
    assert f"the sample is {folder}/sample.py" in lines
