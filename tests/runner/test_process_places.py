"""Which process gets which body: whoever came first, and the process that was used last."""

from __future__ import annotations

from typing import Any

import pytest

from stepwell.runner.bodies import process
from stepwell.runner.bodies.process import ProcessBodies


class Place:
    """Takes bodies as a real one does, and is free when the test says so."""

    def __init__(self, begins: Any, settled: Any, free: Any) -> None:
        self.free = lambda: free(self)
        self.given: list[str] = []
        self.closed = False
        PLACES.append(self)

    def give(self, body: str) -> None:
        self.given.append(body)

    def close(self) -> None:
        self.closed = True


PLACES: list[Place] = []


@pytest.fixture
def bodies(monkeypatch: pytest.MonkeyPatch) -> Any:
    PLACES.clear()
    monkeypatch.setattr(process, "_Place", Place)
    return ProcessBodies(2, lambda attempt: True, lambda held, settle: None)


def test_what_comes_while_no_process_is_free_waits_and_keeps_its_order(bodies: Any) -> None:
    """As when a body was settled for its timeout and its process is still being killed."""
    for body in "abcde":
        bodies.put(body)
    first, second = PLACES
    assert (first.given, second.given) == (["a"], ["b"])
    second.free()
    first.free()
    assert (first.given, second.given) == (["a", "d"], ["b", "c"])
    first.free()
    assert first.given == ["a", "d", "e"]


def test_the_process_that_was_used_last_is_used_next(bodies: Any) -> None:
    bodies.put("a")
    first, second = PLACES
    first.free()
    bodies.put("b")
    assert (first.given, second.given) == (["a", "b"], [])
    bodies.put("c")
    first.free()
    second.free()
    bodies.put("d")
    assert second.given == ["c", "d"]


def test_all_are_closed(bodies: Any) -> None:
    bodies.close()
    assert all(place.closed for place in PLACES)
    assert len(PLACES) == 2
