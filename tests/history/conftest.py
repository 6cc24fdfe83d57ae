"""The engines of the runner's tests, and a ledger that outside services write to."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.conftest import (
    engine,
    nothing_is_left_behind,
    open_engine,
    open_sqlite,
    sqlite_engine,
    sqlite_url,
    url,
)

__all__ = ["engine", "nothing_is_left_behind", "open_engine", "open_sqlite", "sqlite_engine", "sqlite_url", "url"]


@pytest.fixture
def ledger(tmp_path: Path) -> str:
    return str(tmp_path / "ledger")
