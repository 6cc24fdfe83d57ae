"""A URL names a store; what is wrong with one is said before anything is opened."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stepwell.base.clock import ManualClock
from stepwell.core.store.memory import MemoryStore
from stepwell.errors import InputError
from stepwell.stores import open_store
from stepwell.stores.sqlite import SqliteStore


def test_memory_is_a_store_of_its_own_each_time() -> None:
    first, second = open_store("memory://"), open_store("memory://")
    assert isinstance(first, MemoryStore)
    assert first is not second
    assert first.url == "memory://"


def test_four_slashes_are_an_absolute_path(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/runs.db")
    assert isinstance(store, SqliteStore)
    assert store.path == tmp_path / "runs.db"
    assert store.url == f"sqlite:///{tmp_path}/runs.db"
    store.close()
    again = open_store(store.url)
    assert isinstance(again, SqliteStore)
    assert again.path == store.path
    again.close()


def test_three_slashes_are_a_path_below_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store("sqlite:///data/runs.db")
    monkeypatch.chdir("/")
    assert isinstance(store, SqliteStore)
    assert store.path == tmp_path / "data" / "runs.db"
    assert os.path.exists(store.path)
    store.close()


@pytest.mark.parametrize("name", ["with space.db", "50%.db", "häuser.db", "q?mark.db", "a#b.db"])
def test_a_path_may_hold_any_character_when_it_is_quoted(tmp_path: Path, name: str) -> None:
    store = SqliteStore(tmp_path / name)
    again = open_store(store.url)
    assert isinstance(again, SqliteStore)
    assert again.path == tmp_path / name
    again.close()
    store.close()


def test_the_clock_is_the_one_that_is_given(tmp_path: Path) -> None:
    clock = ManualClock(5)
    for url in ("memory://", f"sqlite:///{tmp_path}/runs.db"):
        store = open_store(url, clock=clock)
        assert store.now() == 5
        store.close()


@pytest.mark.parametrize(
    ("url", "advice"),
    [
        ("", "use memory://"),
        ("memory:", "use memory://"),
        ("memory://somewhere", "use memory://"),
        ("memory://?shared=1", "use memory://"),
        ("stepwell.db", "use memory://"),
        ("mysql://localhost/db", "use memory://"),
        ("sqlite://", "three slashes"),
        ("sqlite:///", "three slashes"),
        ("sqlite://stepwell.db", "three slashes"),
        ("sqlite:///x.db?synchronous=off", "synchronous='off' is not one of full, normal"),
        ("sqlite:///x.db?synchronous=", "synchronous='' is not one of full, normal"),
        ("sqlite:///x.db?busy_seconds=soon", "busy_seconds='soon': expected a number of seconds from 0 to"),
        ("sqlite:///x.db?busy_seconds=-1", "busy_seconds='-1': expected a number of seconds from 0 to"),
        ("sqlite:///x.db?busy_seconds=1e10", "busy_seconds='1e10': expected a number of seconds from 0 to"),
        ("sqlite:///x.db?busy_seconds=nan", "busy_seconds='nan': expected a number of seconds from 0 to"),
        ("sqlite:///x.db?mode=ro&cache=shared", "unknown option cache, mode"),
    ],
)
def test_a_url_that_makes_no_sense_is_refused_with_advice(
    url: str, advice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        open_store(url)
    assert advice in str(caught.value)
    assert repr(url) in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("library", "url", "extra"),
    [
        ("psycopg", "postgresql://127.0.0.1:1/x", "postgres"),
        ("redis", "redis://127.0.0.1:1/0", "redis"),
    ],
)
def test_a_library_that_is_not_installed_is_named_with_its_extra(library: str, url: str, extra: str) -> None:
    hidden = f"import sys; sys.modules[{library!r}] = None; from stepwell.cli import main; main()"
    asked = subprocess.run(
        [sys.executable, "-c", hidden, "--store", url, "ls"], capture_output=True, text=True, check=False
    )
    assert asked.returncode != 0
    assert f"pip install 'stepwell[{extra}]'" in asked.stderr
    assert "error in Stepwell" not in asked.stderr
