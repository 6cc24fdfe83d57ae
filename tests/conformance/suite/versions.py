"""Stored definitions: versions never change, are numbered for each name, and one of them is active."""

from __future__ import annotations

from stepwell.base.clock import SECOND, ManualClock
from stepwell.core.model import *
from stepwell.core.store import Store, reader
from tests.conformance.ops import *

NAME = "summarise"


def _save(body: bytes, name: str = NAME) -> SaveVersion:
    return SaveVersion("document", name, f"digest of {body.decode()}", body)


def test_versions_are_numbered_for_each_name_and_kind(store: Store) -> None:
    batch = [_save(b"a"), _save(b"b"), _save(b"a", "other"), SaveVersion("pipeline", NAME, "x", b"p")]
    assert store.commit(batch) == [
        VersionSaved(1, False, 1),
        VersionSaved(2, False, 2),
        VersionSaved(1, False, 1),
        VersionSaved(1, False, 1),
    ]
    found = reader.get_version(store, "document", NAME)
    assert found is not None
    assert (found.number, found.body, found.active) == (2, b"b", True)


def test_the_same_content_is_the_same_version(store: Store, clock: ManualClock) -> None:
    store.commit([_save(b"a"), _save(b"b")])
    stored = list(reader.all_versions(store, "document", NAME))
    clock.advance(SECOND)
    assert store.commit([_save(b"a")]) == [VersionSaved(1, True, 2)]
    assert store.commit([_save(b"a"), _save(b"b")]) == [VersionSaved(1, True, 2), VersionSaved(2, True, 2)]
    assert list(reader.all_versions(store, "document", NAME)) == stored


def test_the_newest_is_active_unless_somebody_chose_another(store: Store) -> None:
    store.commit([_save(b"a"), _save(b"b")])
    assert store.commit([ActivateVersion("document", NAME, 1)]) == [VersionActivated(1)]
    assert store.commit([_save(b"c")]) == [VersionSaved(3, False, 1)]
    assert [row.active for row in reader.all_versions(store, "document", NAME)] == [True, False, False]
    (name,) = reader.all_names(store, "document")
    assert (name.name, name.newest, name.active, name.digest) == (NAME, 3, 1, "digest of a")
    assert store.commit([ActivateVersion("document", NAME, None)]) == [VersionActivated(3)]
    assert store.commit([_save(b"d")]) == [VersionSaved(4, False, 4)]


def test_only_what_is_there_is_activated(store: Store) -> None:
    unknown = [ActivateVersion("document", NAME, 1), ActivateVersion("document", NAME, None)]
    assert store.commit(unknown) == [Refused(Refusal.UNKNOWN, f"{NAME}@1"), Refused(Refusal.UNKNOWN, NAME)]
    store.commit([_save(b"a")])
    for number in (0, 2, -1):
        refused = [Refused(Refusal.UNKNOWN, f"{NAME}@{number}")]
        assert store.commit([ActivateVersion("document", NAME, number)]) == refused
    assert store.commit([ActivateVersion("pipeline", NAME, 1)]) == [Refused(Refusal.UNKNOWN, f"{NAME}@1")]


def test_a_version_is_found_by_number_and_by_digest(store: Store) -> None:
    store.commit([_save(b"a"), _save(b"b")])
    first = reader.get_version(store, "document", NAME, 1)
    assert first is not None
    assert (first.body, first.size, first.digest, first.active) == (b"a", 1, "digest of a", False)
    assert reader.get_version(store, "document", NAME, digest="digest of a") == first
    assert reader.get_version(store, "document", NAME, 3) is None
    assert reader.get_version(store, "document", NAME, digest="none") is None
    assert reader.get_version(store, "document", "nobody") is None
    assert store.read([GetVersion("pipeline", NAME), GetVersion("document", NAME, 1)]) == [None, first]


def test_lists_are_paged_and_have_no_bodies(store: Store) -> None:
    names = [f"name {number:02}" for number in range(7)]
    store.commit([_save(str(number).encode(), name) for name in reversed(names) for number in range(5)])
    assert [row.name for row in reader.all_names(store, "document", page=3)] == names
    rows = list(reader.all_versions(store, "document", names[0], page=2))
    assert [row.number for row in rows] == [1, 2, 3, 4, 5]
    assert {row.body for row in rows} == {None}
    assert store.read([ListVersions("document", names[0], after=3, limit=1)])[0][0].number == 4
    assert [row.name for row in store.read([ListNames("document", after=names[4], limit=1)])[0]] == [names[5]]
    assert list(reader.all_names(store, "trigger")) == []


def test_a_large_body_comes_back_as_it_was(store: Store) -> None:
    body = bytes(range(256)) * 8_000
    store.commit([SaveVersion("trigger", "Ümläut \u0007 @ 7", "d", body)])
    found = reader.get_version(store, "trigger", "Ümläut \u0007 @ 7")
    assert found is not None
    assert (found.body, found.size) == (body, len(body))


def test_a_name_that_not_every_store_can_keep_is_refused(store: Store) -> None:
    for name in ("a NUL \u0000", "half a character \ud800", "long" * 200):
        assert refused(store, SaveVersion("trigger", name, "d", b"")) is Refusal.INVALID


def test_many_who_save_at_once_get_versions_of_their_own(store: Store) -> None:
    numbers: list[int] = []

    def save(who: int) -> None:
        for each in range(5):
            numbers.append(one(store, _save(f"{who} {each}".encode()), VersionSaved).number)

    in_threads(4, save)
    assert sorted(numbers) == list(range(1, 21))
