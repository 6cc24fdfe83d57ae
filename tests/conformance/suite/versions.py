"""Stored definitions: versions never change, are numbered for each name, and one of them is active."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from stepwell.base.clock import SECOND, ManualClock
from stepwell.core.model import *
from stepwell.core.model.versions import VERSION_CONTENT, VERSION_INDEX
from stepwell.core.store import Store
from stepwell.core.store.versions import (
    activate_version,
    all_names,
    all_versions,
    get_content,
    get_version,
    list_names,
    save_version,
)
from stepwell.errors import InputError, StoreCorrupt
from tests.conformance.ops import *

NAME = "summarise"


def _save(store: Store, body: bytes, name: str = NAME) -> VersionSaved:
    return save_version(store, "document", name, f"digest of {body.decode()}", body)


def test_versions_are_numbered_for_each_name_and_kind(store: Store) -> None:
    assert [_save(store, b"a"), _save(store, b"b")] == [VersionSaved(1, False, 1), VersionSaved(2, False, 2)]
    assert _save(store, b"a", "other") == VersionSaved(1, False, 1)
    assert save_version(store, "pipeline", NAME, "x", b"p") == VersionSaved(1, False, 1)
    row = get_version(store, "document", NAME)
    assert row is not None
    assert (row.number, row.active) == (2, True)
    assert get_content(store, "document", row.digest) == b"b"


def test_the_same_content_is_the_same_version(store: Store, clock: ManualClock) -> None:
    _save(store, b"a")
    _save(store, b"b")
    rows = all_versions(store, "document", NAME)
    clock.advance(SECOND)
    assert _save(store, b"a") == VersionSaved(1, True, 2)
    assert _save(store, b"b") == VersionSaved(2, True, 2)
    assert all_versions(store, "document", NAME) == rows


def test_the_newest_is_active_unless_somebody_chose_another(store: Store) -> None:
    _save(store, b"a")
    _save(store, b"b")
    assert activate_version(store, "document", NAME, 1) == 1
    assert _save(store, b"c") == VersionSaved(3, False, 1)
    assert [row.active for row in all_versions(store, "document", NAME)] == [True, False, False]
    (name,) = all_names(store, "document")
    assert (name.name, name.newest, name.active, name.digest) == (NAME, 3, 1, "digest of a")
    assert activate_version(store, "document", NAME, None) == 3
    assert _save(store, b"d") == VersionSaved(4, False, 4)


def test_only_what_is_there_is_activated(store: Store) -> None:
    assert activate_version(store, "document", NAME, 1) is None
    assert activate_version(store, "document", NAME, None) is None
    _save(store, b"a")
    assert [activate_version(store, "document", NAME, number) for number in (0, 2, -1)] == [None, None, None]
    assert activate_version(store, "pipeline", NAME, 1) is None
    assert [row.active for row in all_versions(store, "document", NAME)] == [True]


def test_a_version_is_found_by_number_and_by_digest(store: Store) -> None:
    _save(store, b"a")
    _save(store, b"b")
    first = get_version(store, "document", NAME, 1)
    assert first is not None
    assert (first.size, first.digest, first.active) == (1, "digest of a", False)
    assert get_version(store, "document", NAME, digest="digest of a") == first
    assert get_version(store, "document", NAME, 3) is None
    assert get_version(store, "document", NAME, 0) is None
    assert get_version(store, "document", NAME, digest="none") is None
    assert get_version(store, "document", "nobody") is None
    assert get_version(store, "pipeline", NAME) is None


def test_names_are_listed_in_order_page_by_page(store: Store) -> None:
    names = [f"name {number:02}" for number in range(7)]
    for name in reversed(names):
        for number in range(3):
            _save(store, str(number).encode(), name)
    assert [row.name for row in all_names(store, "document", page=3)] == names
    assert [row.number for row in all_versions(store, "document", names[0])] == [1, 2, 3]
    page = list_names(store, "document", names[4], 1)
    assert ([row.name for row in page], page.cursor) == ([names[5]], names[5])
    assert list(all_names(store, "trigger")) == []


def test_a_large_content_comes_back_as_it_was(store: Store) -> None:
    content = bytes(range(256)) * 8_000
    save_version(store, "trigger", "Ümläut \u0007 @ 7", "d", content)
    row = get_version(store, "trigger", "Ümläut \u0007 @ 7")
    assert row is not None
    assert row.size == len(content)
    assert get_content(store, "trigger", "d") == content


def test_a_name_that_not_every_store_can_keep_is_refused(store: Store) -> None:
    for name in ("a NUL \u0000", "half a character \ud800", "long" * 200):
        with pytest.raises(InputError, match="cannot be stored"):
            save_version(store, "trigger", name, "d", b"")
    assert list(all_names(store, "trigger")) == []


class _Interrupted:
    """A store in which something happens before the first commit."""

    def __init__(self, store: Store, happens: Callable[[], object]) -> None:
        self._store, self._happens = store, [happens]
        self.url, self.now, self.read = store.url, store.now, store.read

    def commit(self, batch: Sequence[Op]) -> Any:
        while self._happens:
            self._happens.pop()()
        return self._store.commit(batch)


def test_a_version_that_is_saved_or_chosen_meanwhile_is_not_lost(store: Store) -> None:
    assert _save(_Interrupted(store, lambda: _save(store, b"b")), b"a") == VersionSaved(2, False, 2)  # type: ignore[arg-type]
    assert _save(_Interrupted(store, lambda: _save(store, b"c")), b"c").number == 3  # type: ignore[arg-type]
    chosen = _Interrupted(store, lambda: activate_version(store, "document", NAME, 1))
    assert _save(chosen, b"d") == VersionSaved(4, False, 1)  # type: ignore[arg-type]
    saved = _Interrupted(store, lambda: _save(store, b"e"))
    assert activate_version(saved, "document", NAME, 2) == 2  # type: ignore[arg-type]
    rows = all_versions(store, "document", NAME)
    assert [row.digest for row in rows] == [f"digest of {each}" for each in "bacde"]
    assert [get_content(store, "document", row.digest) for row in rows] == [b"b", b"a", b"c", b"d", b"e"]
    assert [row.number for row in rows if row.active] == [2]


def test_a_content_that_no_index_names_is_no_version(store: Store) -> None:
    """Two savers at once leave it, if the second dies."""
    store.commit([PutRecord(VERSION_CONTENT["document"], "digest of a", b"a", 0)])
    assert list(all_names(store, "document")) == []
    assert _save(store, b"a") == VersionSaved(1, False, 1)
    assert get_content(store, "document", "digest of a") == b"a"


def test_a_version_without_its_content_is_corrupt(store: Store) -> None:
    _save(store, b"a")
    store.commit([PutRecord(VERSION_CONTENT["document"], "digest of a", None)])
    with pytest.raises(StoreCorrupt, match="digest of a is missing"):
        get_content(store, "document", "digest of a")


def test_index_and_content_are_one_commit(store: Store) -> None:
    batches: list[Sequence[Op]] = []
    store.hooks.add(lambda batch, answer: batches.append(batch))
    _save(store, b"a")
    kinds = [[op.kind for op in batch if isinstance(op, PutRecord)] for batch in batches]
    assert kinds == [[VERSION_INDEX["document"], VERSION_CONTENT["document"]]]


def test_many_who_save_at_once_get_versions_of_their_own(store: Store) -> None:
    numbers: list[int] = []

    def save(who: int) -> None:
        for each in range(5):
            numbers.append(_save(store, f"{who} {each}".encode()).number)

    in_threads(4, save)
    assert sorted(numbers) == list(range(1, 21))
