"""Replaying a run from its page, its state at a moment and its cassette: the server has no code, a worker has it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import pytest
from playwright.sync_api import Page, expect

from stepwell import Delta, Engine, Workflow, step
from stepwell.reducers import append
from stepwell.server.serving import Serving
from tests.server.running import running


def shopping(factor: int) -> type[Workflow]:
    """A class inside a function: the server cannot import it."""

    class Shopping(Workflow):
        number: int

        class State:
            coins: Annotated[list[int], append]

        @step(side_effects="pure")
        def double(self) -> Delta[int]:
            return Delta(self.number * factor, coins=[self.number])

        @step(side_effects="pure")
        def half(self, double: int) -> Delta[float]:
            return Delta(double / 2, coins=[double])

    return Shopping


@pytest.fixture
def site(url: str) -> Iterator[Serving]:
    """A server that runs nothing."""
    with running(url) as serving:
        yield serving


def test_a_run_is_replayed_and_looked_back_at_by_a_worker(
    url: str, open_page: Callable[..., Page], tmp_path: Path
) -> None:
    before = shopping(2)
    with Engine(url, workflows=[before]) as engine:
        run = engine.run(before(number=7)).id
    page = open_page(f"/runs/{run}")
    page.get_by_role("button", name="More").click()
    page.get_by_role("menuitem", name="Replay…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Replay").click()
    expect(dialog.get_by_role("alert").get_by_text("no worker is alive that has the code")).to_be_visible()
    expect(dialog.get_by_text("test_replay:shopping.<locals>.Shopping", exact=False).last).to_be_visible()
    expect(dialog.get_by_text(f"stepwell replay {run}", exact=True)).to_be_visible()
    dialog.get_by_role("button", name="Cassette").click()
    expect(dialog.get_by_text("would not be masked", exact=False)).to_be_visible()
    with page.expect_download() as download:
        dialog.get_by_role("button", name="Download it with").click()
    download.value.save_as(tmp_path / "cassette.json")
    assert json.loads((tmp_path / "cassette.json").read_text())["run"]["id"] == run
    with Engine(url, workflows=[before]):
        dialog.get_by_role("button", name="Replay again").click()
        expect(dialog.get_by_text("The same, byte for byte: 2 nodes run again")).to_be_visible()
    with Engine(url, workflows=[shopping(3)]):
        dialog.get_by_role("button", name="Replay again").click()
        expect(dialog.get_by_text("its output is not the one that was recorded")).to_be_visible()
        expect(dialog.get_by_text("recorded 14, now 21", exact=False)).to_be_visible()
        dialog.get_by_role("button", name="double, attempt 1").click()
        panel = page.get_by_role("complementary", name="Node")
        expect(panel.get_by_role("tab", name="Attempts", selected=True)).to_be_visible()
        page.get_by_label("Moment of the history").focus()
        page.keyboard.press("Home")
        page.get_by_role("button", name="State").click()
        expect(dialog.get_by_text("coins")).to_be_visible()
        expect(dialog.get_by_text(f"stepwell checkpoints {run} 1", exact=True)).to_be_visible()
