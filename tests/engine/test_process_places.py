"""Which process gets which body: whoever came first, and the process that was used last."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from stepwell import Engine
from stepwell.engine.bodies import process
from stepwell.engine.bodies.process import ProcessBodies


class Place:
    """Takes bodies as a real one does, and is free when the test says so."""

    def __init__(self, worker: Any, free: Any) -> None:
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
    return ProcessBodies(Any, 2)  # type: ignore[arg-type]


def test_what_comes_while_no_process_is_free_waits_and_keeps_its_order(bodies: Any) -> None:
    """As when a body was settled for its timeout and its process is still being killed."""
    bodies.begin(list("abcde"))
    first, second = PLACES
    assert (first.given, second.given) == (["a"], ["b"])
    second.free()
    first.free()
    assert (first.given, second.given) == (["a", "d"], ["b", "c"])
    first.free()
    assert first.given == ["a", "d", "e"]


def test_the_process_that_was_used_last_is_used_next(bodies: Any) -> None:
    bodies.begin(["a"])
    first, second = PLACES
    first.free()
    bodies.begin(["b"])
    assert (first.given, second.given) == (["a", "b"], [])
    bodies.begin(["c"])
    first.free()
    second.free()
    bodies.begin(["d"])
    assert second.given == ["c", "d"]


def test_all_are_closed(bodies: Any) -> None:
    bodies.close()
    assert all(place.closed for place in PLACES)
    assert len(PLACES) == 2


def bodies_of(engine: Engine) -> Any:
    work = engine.parts.work
    work.begin()
    assert work.runner is not None
    return work.runner._bodies


def test_bodies_that_come_first_at_the_same_time_share_one_set_of_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second set would be forgotten, and its processes would outlive the engine."""
    opened: list[Any] = []

    class Bodies(ProcessBodies):
        def __init__(self, *_: object) -> None:
            time.sleep(0.05)  # so that the others come while this one is opened
            opened.append(self)
            self.bodies: list[Any] = []
            self.closed = False

        def begin(self, bodies: list[Any], *, keep: bool = False) -> None:
            assert not self.closed
            self.bodies += bodies

        def close(self) -> None:
            self.closed = True

    monkeypatch.setattr(process, "ProcessBodies", Bodies)
    held: list[Any] = [SimpleNamespace(kind="process", number=number) for number in range(5)]
    with Engine("memory://") as engine:
        bodies = bodies_of(engine)
        threads = [threading.Thread(target=bodies.begin, args=([body],), kwargs={"keep": False}) for body in held[:4]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(opened) == 1
        assert sorted(body.number for body in opened[0].bodies) == [0, 1, 2, 3]
        assert opened[0].closed is False
    assert opened[0].closed


def test_a_kind_that_is_needed_first_when_the_worker_has_closed_is_not_opened() -> None:
    held: Any = SimpleNamespace(kind="process")
    with Engine("memory://") as engine:
        bodies = bodies_of(engine)
    assert bodies.begin([held], keep=False) is None
    assert "process" not in bodies._executors
