"""A plugin for pytest in a private tree: run the tests that were chosen, in the order they were given."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

NOTES = Path(__file__).parents[3] / "notes"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    chosen = json.loads((NOTES / "chosen.json").read_text())
    found = {item.nodeid: item for item in items}
    missing = [name for name in chosen if name not in found]
    if missing:
        (NOTES / "failed.txt").write_text(f"{missing[0]} (is not there)")
        raise pytest.UsageError(f"{len(missing)} tests are not there, the first is {missing[0]}")
    items[:] = [found[name] for name in chosen]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        (NOTES / "failed.txt").write_text(report.nodeid)
