"""Which process gets which body: whoever came first, and the process that was used last."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from stepwell import Engine
from stepwell.engine.bodies import process
from stepwell.engine.bodies.process import ProcessBodies


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
    monkeypatch.setattr(process, "_Slot", Place)
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


def test_bodies_that_come_first_at_the_same_time_share_one_set_of_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second set would be forgotten, and its processes would outlive the engine."""
    made: list[Any] = []

    class Bodies:
        def __init__(self, *_: object) -> None:
            time.sleep(0.05)  # so that the others come while this one is made
            made.append(self)
            self.given: list[Any] = []
            self.closed = False

        def put(self, attempt: Any) -> None:
            assert not self.closed
            self.given.append(attempt)

        def close(self) -> None:
            self.closed = True

    monkeypatch.setattr(process, "ProcessBodies", Bodies)
    with Engine("memory://") as engine:
        bodies = engine._require_runner()._bodies
        threads = [threading.Thread(target=bodies._put_into_process, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (len(made), sorted(made[0].given)) == (1, [0, 1, 2, 3])
    bodies._put_into_process("late")  # type: ignore[arg-type]
    assert (len(made), len(made[0].given), made[0].closed) == (1, 4, True)
