"""`make quick` runs what `tests/quick.txt` names."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_what_is_named_is_there_and_named_once() -> None:
    names = (ROOT / "tests" / "quick.txt").read_text("utf-8").splitlines()
    assert [name for name in names if not (ROOT / name).exists()] == []
    assert len(set(names)) == len(names)
