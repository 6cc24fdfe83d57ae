"""Child processes that die, stop and come back; none outlives its test."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import pytest

Child = ForkServerProcess
StartChild = Callable[..., Child]

# Children are forked from a process that has imported everything, so that hundreds of them take seconds, not minutes.
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    ["__main__", "tests.chaos.work", "stepwell.stores.sqlite", "stepwell.engine.bodies.process"]
)


@pytest.fixture
def start_child() -> Iterator[StartChild]:
    """Starts a process that calls a function; killed in the end, stopped or not."""
    children: list[Child] = []

    def start(target: Callable[..., None], *args: Any, **options: Any) -> Child:
        child = _CONTEXT.Process(target=target, args=args, kwargs=options)
        child.start()
        children.append(child)
        return child

    try:
        yield start
    finally:
        for child in children:
            child.kill()
            child.join()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/stepwell.db"


@pytest.fixture
def ledger(tmp_path: Path) -> str:
    return f"{tmp_path}/ledger"
