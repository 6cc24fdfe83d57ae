"""Engines on both stores, and a watch that no test leaves threads or processes behind."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from stepwell import Engine
from tests.engine.waiting import eventually


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    """A closed engine has no thread and no process any more. A body that hangs is for its test to release."""
    before = set(threading.enumerate())
    yield
    eventually(lambda: not _threads(before), "a thread outlived its engine", show=lambda: _threads(before))
    eventually(lambda: not _processes(), "a process outlived its engine", show=_processes)


def _threads(before: set[threading.Thread]) -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each not in before and each.name.startswith("stepwell")]


def _processes() -> list[str]:
    found = []
    for child in psutil.Process().children():
        try:
            command = " ".join(child.cmdline())
        except psutil.Error:
            continue
        if "multiprocessing.spawn" in command:
            found.append(command)
    return found


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/stepwell.db"


@pytest.fixture(params=["memory", "sqlite"])
def url(request: pytest.FixtureRequest, sqlite_url: str) -> str:
    return "memory://" if request.param == "memory" else sqlite_url


OpenEngine = Callable[..., Engine]


@pytest.fixture
def open_engine(url: str) -> Iterator[OpenEngine]:
    """Opens engines on one store, each with what it is given, and closes them all in the end."""
    with _opener(url) as opened:
        yield opened


@pytest.fixture
def open_sqlite(sqlite_url: str) -> Iterator[OpenEngine]:
    with _opener(sqlite_url) as opened:
        yield opened


class _opener:
    def __init__(self, url: str) -> None:
        self._url = url
        self._engines: list[Engine] = []

    def __enter__(self) -> OpenEngine:
        return self._open

    def _open(self, **options: Any) -> Engine:
        engine = Engine(self._url, **{"close_seconds": 1.0, **options})
        self._engines.append(engine)
        return engine

    def __exit__(self, *_: object) -> None:
        for engine in self._engines:
            engine.close()


@pytest.fixture
def engine(open_engine: OpenEngine) -> Engine:
    return open_engine()


@pytest.fixture
def sqlite_engine(open_sqlite: OpenEngine) -> Engine:
    return open_sqlite()
