"""A plugin for pytest in a private tree: tell `tracing` which test runs, and note how long each took and which failed."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .tracing import current, write_lines

NOTES = Path(__file__).parents[3] / "notes"


class Timing:
    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._failed: set[str] = set()
        self._skipped: set[str] = set()
        self._test = ""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        self._test = item.nodeid
        _is_for(item.nodeid)
        began = time.monotonic()
        result = yield
        self._seconds[item.nodeid] = time.monotonic() - began
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Iterator[Any]:
        """What is set up once serves every test of the file, whichever asked first."""
        if fixturedef.scope == "function":
            return (yield)
        _is_for(self._test.split("::")[0])
        try:
            return (yield)
        finally:
            _is_for(self._test)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.add(report.nodeid)
        elif report.skipped:
            self._skipped.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        measuring = current()
        measuring.stop()
        write_lines(measuring, NOTES / "lines-main.json")
        seconds = {test: took for test, took in self._seconds.items() if test not in self._skipped}
        (NOTES / "told.json").write_text(json.dumps({"seconds": seconds, "failed": sorted(self._failed)}))


def _is_for(test: str) -> None:
    (NOTES / "test").write_text(test)
    current().switch_context(test)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Timing())
