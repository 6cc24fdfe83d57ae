"""A plugin for pytest in a private tree: run the tests that were chosen, in the order they were given."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

NOTES = Path(__file__).parents[3] / "notes"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    found = {item.nodeid: item for item in items}
    chosen = json.loads((NOTES / "chosen.json").read_text())
    items[:] = [found[name] for name in chosen if name in found]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        (NOTES / "failed.txt").write_text(report.nodeid)
