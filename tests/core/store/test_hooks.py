"""What is called after the commits of a store, in which order, and what it costs."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from stepwell.core.model import Answer
from stepwell.core.store.hooks import CommitHooks


def answered(batch: Any) -> Answer:
    return Answer([*batch], 0, ())


def test_hooks_are_called_in_turn_with_what_was_committed() -> None:
    hooks, called = CommitHooks(), list[Any]()
    assert hooks.around(answered, ["nobody"]) == ["nobody"]  # type: ignore[list-item]
    hooks.add(lambda batch, answer: called.append(("first", batch, list(answer))))
    hooks.add(lambda batch, answer: called.append(("second", batch, list(answer))), in_order=True)
    hooks.around(answered, ["op"])  # type: ignore[list-item]
    assert called == [("first", ["op"], ["op"]), ("second", ["op"], ["op"])]


@pytest.mark.parametrize("in_order", [False, True])
def test_what_was_not_applied_is_not_reported_and_the_next_commit_is(in_order: bool) -> None:
    hooks, called = CommitHooks(), list[Any]()
    hooks.add(lambda batch, answer: called.append(batch), in_order=in_order)

    def fail(batch: Any) -> Answer:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        hooks.around(fail, [])
    assert hooks.around(lambda batch: None, []) is None
    hooks.around(answered, ["op"])  # type: ignore[list-item]
    assert called == [["op"]]


@pytest.mark.parametrize("in_order", [False, True])
def test_commits_wait_for_each_other_only_if_a_hook_wants_their_order(in_order: bool) -> None:
    hooks, within, free = CommitHooks(), threading.Semaphore(0), threading.Event()
    hooks.add(lambda batch, answer: None, in_order=in_order)

    def commit(batch: Any) -> Answer:
        within.release()
        free.wait(30)
        return answered(batch)

    threads = [threading.Thread(target=hooks.around, args=(commit, [])) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert within.acquire(timeout=30)
    assert within.acquire(timeout=0.3 if in_order else 30) is not in_order
    free.set()
    for thread in threads:
        thread.join(30)
