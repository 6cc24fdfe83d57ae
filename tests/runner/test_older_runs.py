"""What was stored when all data were plain JSON is read, replayed, forked and finished by code that has types today."""

from __future__ import annotations

import shutil
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from stepwell import Engine
from stepwell.replay.history.loading import load_cassette
from stepwell.runner.reports.replay import replay_cassette
from tests.runner.kept_orders import Line, Order

TESTS = Path(__file__).parents[1]
LINES = [Line("book", Decimal("12.50")), Line("pen", Decimal("1.50"))]
NODES = ("check", "price", "ship", "close")


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Written by the version before types came: a run that was completed, and one whose worker died in `ship`."""
    shutil.copy(TESTS / "store/sqlite/files/before-types.db", tmp_path / "old.db")
    return f"sqlite:///{tmp_path}/old.db"


def test_a_completed_run_has_types_now_and_is_replayed_and_forked(url: str) -> None:
    with Engine(url, workflows=[Order], runner=None) as engine:
        run = engine.get("done")
        assert run.output(Order.check) == LINES
        assert run.output(Order.price) == Decimal("14.00")
        assert run.result == "31.01.2026 14.00 418 2 price"
        assert run.state == {"seen": 2, "last": "price"}
        assert run.replay().executed == NODES
        assert run.audit() == []
        assert Order(lines=LINES, day=date(2026, 1, 31)).input()["day"] == run.input["day"]


def test_a_run_that_was_left_goes_on_and_its_history_is_one(url: str, tmp_path: Path) -> None:
    with Engine(url, workflows=[Order]) as engine:
        run = engine.get("half").wait(60).check()
        assert run.output("check") == LINES
        assert run.result.endswith(" 2 price")
        assert [attempt.status for attempt in run.node("ship").attempts] == ["LOST", "COMPLETED"]
        assert run.replay().executed == NODES
        cassette = load_cassette(run.export(tmp_path / "half.cassette.json"))
        fork = engine.get("done").fork("price").wait(60).check()
        assert fork.output(Order.price) == Decimal("14.00")
        assert run.audit() == fork.audit() == []
    assert replay_cassette(cassette, jobs=["tests"]).executed == NODES


def test_its_cassette_is_replayed() -> None:
    file = TESTS / "replay/cassettes/kept-orders-before-types.cassette.json"
    assert replay_cassette(load_cassette(file), jobs=["tests"]).executed == NODES
