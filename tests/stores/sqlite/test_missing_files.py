"""Files that are deleted, moved or replaced below an open store: no commit is acknowledged that others would not find."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from stepwell.base.ids import RunId
from stepwell.core.store import reader
from stepwell.errors import StoreError
from stepwell.stores.sqlite import SqliteStore
from tests.conformance.ops import RUN, create, graph, start

FILES = ("", "-wal", "-shm")


def delete(path: Path) -> None:
    path.unlink()


def replace(path: Path) -> None:
    content = path.read_bytes()
    path.unlink()
    path.with_name("other").touch()  # so that the copy cannot get its inode
    path.write_bytes(content)


def move(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))


@pytest.mark.parametrize("age", [0, 3600], ids=["just opened", "long open"])
@pytest.mark.parametrize("suffix", FILES)
@pytest.mark.parametrize("remove", [delete, replace, move])
def test_no_commit_is_acknowledged_once_a_file_is_gone(
    tmp_path: Path, remove: Callable[[Path], None], suffix: str, age: int
) -> None:
    store = SqliteStore(path := tmp_path / "runs.db")
    of = start(store, graph(a=""))
    os.utime(tmp_path, (time.time() - age,) * 2)
    store.commit([create(of, "kept")])  # in a folder that has not changed for a while
    assert (store._files._unchanged is not None) == (age > 0)
    remove(gone := path.with_name(path.name + suffix))
    for number in range(5):
        with pytest.raises(StoreError, match=rf"{gone} was deleted, moved or replaced while"):
            store.commit([create(of, f"lost-{number}")])
    with pytest.raises(StoreError, match="was deleted, moved or replaced"):
        store.read([])  # `/readyz` asks this
    store.close()


def test_no_commit_is_acknowledged_once_the_folder_has_moved(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "one" / "runs.db")
    of = start(store, graph(a=""))
    os.utime(tmp_path / "one", (0, 0))
    store.commit([create(of, "kept")])
    (tmp_path / "one").rename(tmp_path / "two")
    with pytest.raises(StoreError, match="was deleted, moved or replaced"):
        store.commit([create(of, "lost")])
    store.close()


@pytest.mark.parametrize("suffix", FILES)
def test_commits_go_on_when_the_file_is_back(tmp_path: Path, suffix: str) -> None:
    store = SqliteStore(path := tmp_path / "runs.db")
    of = start(store, graph(a=""))
    file = path.with_name(path.name + suffix)
    move(file)
    with pytest.raises(StoreError):
        store.commit([create(of, "meanwhile")])
    tmp_path.joinpath("elsewhere").rename(file)
    store.commit([create(of, "later")])
    store.close()
    again = SqliteStore(path)
    assert {RUN, "later"} <= {row.id for row in reader.all_runs(again)}
    again.close()


def test_a_file_that_is_deleted_while_it_is_written_to_acknowledges_nothing(tmp_path: Path) -> None:
    """The transaction began before the file was deleted, and is committed after that."""
    store = SqliteStore(path := tmp_path / "runs.db")
    of = start(store, graph(a=""))
    store._writer.set_commit_hook(lambda: path.unlink(missing_ok=True) or False)
    with pytest.raises(StoreError, match="was deleted, moved or replaced"):
        store.commit([create(of, "run-2")])
    store.close()


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_what_was_acknowledged_before_the_log_was_deleted_is_there_after_closing(tmp_path: Path, suffix: str) -> None:
    store = SqliteStore(path := tmp_path / "runs.db")
    start(store, graph(a=""))
    path.with_name(path.name + suffix).unlink()
    store.close()
    again = SqliteStore(path)
    assert [row.id for row in reader.all_runs(again)] == [RUN]
    again.close()


def test_a_link_to_the_file_opens_it_and_its_log(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (link := tmp_path / "runs.db").symlink_to(tmp_path / "data" / "real.db")
    store, other = SqliteStore(link), SqliteStore(tmp_path / "data" / "real.db")
    of = start(store, graph(a=""))
    assert reader.get_run(other, RunId(RUN)) is not None
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("runs")] == ["runs.db"]
    link.unlink()
    with pytest.raises(StoreError, match=r"runs\.db was deleted, moved or replaced"):
        store.commit([create(of, "run-2")])
    store.close()
    other.close()
