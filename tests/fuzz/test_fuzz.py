"""A short form of `make fuzz`: the seeds, and a few drawn inputs of each kind."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz import limits
from tests.fuzz.limits import Limited
from tests.fuzz.targets import TARGETS, Target


@pytest.fixture(scope="module")
def limited() -> Iterator[Limited]:
    made = Limited()
    yield made
    made.close()


@pytest.mark.parametrize("name", TARGETS)
def test_what_strangers_write_is_taken_within_limits(limited: Limited, name: str) -> None:
    target = TARGETS[name]
    for each in target.seeds[: target.quick]:
        assert limited.problem(name, each) is None, ascii(each)[:200]

    if target.drawn:
        _draw(limited, name, target)


def _draw(limited: Limited, name: str, target: Target) -> None:
    @settings(max_examples=target.drawn, suppress_health_check=list(HealthCheck))
    @given(target.draw)
    def attempt(given: Any) -> None:
        assert limited.problem(name, given) is None

    attempt()


def test_what_takes_too_long_or_too_much_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits hold: an input that is too much for one is a finding, and the next one is tried as if nothing had been."""
    made = Limited()
    try:
        monkeypatch.setattr(limits, "MEGABYTES", 20)
        assert "MB" in str(made.problem("json", "[" + "[]," * 900_000 + "1]"))
        assert made.problem("json", "[]") is None
        monkeypatch.setattr(limits, "SECONDS", 0.2)
        assert "more than 0.2 s" in str(made.problem("yaml", "a: [" + "[]," * 300_000 + "1]"))
    finally:
        made.close()


def test_a_busy_machine_makes_no_input_take_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Limited()
    try:
        assert made.problem("json", "[]") is None
        assert made._process is not None
        monkeypatch.setattr(limits, "SECONDS", 0.5)
        os.kill(made._process.pid, signal.SIGSTOP)
        goes_on = threading.Timer(1.5, os.kill, (made._process.pid, signal.SIGCONT))
        goes_on.start()
        assert made.problem("json", "[]") is None
        goes_on.join()
    finally:
        made.close()


def test_every_target_has_seeds_and_draws() -> None:
    assert all(target.seeds and isinstance(target.draw, st.SearchStrategy) for target in TARGETS.values())
