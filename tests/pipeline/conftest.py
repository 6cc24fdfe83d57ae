"""A root of one's own, and an engine beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stepwell import Engine


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with Engine(f"sqlite:///{tmp_path}/engine.db") as opened:
        yield opened
