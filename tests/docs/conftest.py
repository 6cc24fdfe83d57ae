"""A terminal for the tests of pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.terminal import Terminal


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Terminal]:
    """In an empty folder. In the end all that the page tells to type must have been typed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("stepwell.cli.streams.reserve_stdout", lambda: None)  # it changes the whole process
    opened = Terminal(tmp_path, monkeypatch, capsys)
    yield opened
    opened.close()
