"""Small records: what was read is changed only if nobody else has changed it since."""

from __future__ import annotations

import json

from stepwell.base.clock import ManualClock
from stepwell.core.model import *
from stepwell.core.store import Store, reader
from tests.conformance.ops import *


def _version(store: Store, key: str = "a", kind: str = "token") -> int:
    row = reader.get_record(store, kind, key)
    return 0 if row is None else row.version


def test_a_record_is_found_by_kind_and_key(store: Store) -> None:
    first, second = store.commit([PutRecord("token", "a", b"1"), PutRecord("trigger", "a", b"2")])
    assert isinstance(first, RecordPut)
    assert isinstance(second, RecordPut)
    assert reader.get_record(store, "token", "a") == RecordRow("a", first.version, b"1")
    assert reader.get_record(store, "trigger", "a") == RecordRow("a", second.version, b"2")
    assert store.read([GetRecord("token", "b"), GetRecord("token", "a")]) == [None, RecordRow("a", first.version, b"1")]
    assert first.version > 0


def test_a_record_changes_only_from_the_version_that_was_read(store: Store) -> None:
    assert isinstance(store.commit([PutRecord("token", "a", b"1", expected=0)])[0], RecordPut)
    read = _version(store)
    assert store.commit([PutRecord("token", "a", b"2", expected=0)]) == [Refused(Refusal.CONFLICT, str(read))]
    assert isinstance(store.commit([PutRecord("token", "a", b"2", expected=read)])[0], RecordPut)
    now = _version(store)
    assert now > read
    for value in (b"3", None):
        assert store.commit([PutRecord("token", "a", value, expected=read)]) == [Refused(Refusal.CONFLICT, str(now))]
    assert reader.get_record(store, "token", "a") == RecordRow("a", now, b"2")
    assert store.commit([PutRecord("token", "b", b"3", expected=read)]) == [Refused(Refusal.CONFLICT, "0")]


def test_a_repeated_op_gets_the_same_answer(store: Store) -> None:
    added = store.commit([PutRecord("token", "a", b"1", expected=0)])
    assert store.commit([PutRecord("token", "a", b"1", expected=0)]) == added
    version = _version(store)
    changed = store.commit([PutRecord("token", "a", b"2", expected=version)])
    assert store.commit([PutRecord("token", "a", b"2", expected=version)]) == changed
    version = _version(store)
    assert store.commit([PutRecord("token", "a", None, expected=version)]) == [RecordPut(0)]
    assert store.commit([PutRecord("token", "a", None, expected=version)]) == [RecordPut(0)]


def test_a_key_that_was_removed_and_added_again_is_another_record(store: Store, clock: ManualClock) -> None:
    store.commit([PutRecord("token", "a", b"1")])
    first = _version(store)
    store.commit([PutRecord("token", "a", None)])
    assert reader.get_record(store, "token", "a") is None
    clock.advance(1)
    store.commit([PutRecord("token", "a", b"2")])
    again = _version(store)
    assert again > first
    assert store.commit([PutRecord("token", "a", b"3", expected=first)]) == [Refused(Refusal.CONFLICT, str(again))]


def test_ops_of_one_batch_see_each_other(store: Store) -> None:
    receipts = store.commit(
        [
            PutRecord("token", "a", b"1", expected=0),
            PutRecord("token", "a", b"2", expected=0),
            PutRecord("token", "a", b"3"),
            PutRecord("token", "b", b"4"),
            PutRecord("token", "b", None),
        ]
    )
    assert isinstance(receipts[1], Refused)
    assert isinstance(receipts[2], RecordPut)
    assert receipts[2].version > receipts[0].version  # type: ignore[union-attr]
    assert [row.value for row in reader.all_records(store, "token")] == [b"3"]


def test_records_are_listed_by_key_page_by_page(store: Store) -> None:
    keys = [f"key {number:02}" for number in range(7)] + ["Ümläut \u0007 @ 7"]
    store.commit([PutRecord("token", key, key.encode()) for key in reversed(keys)])
    store.commit([PutRecord("trigger", "other", b"")])
    assert [row.key for row in reader.all_records(store, "token", page=3)] == keys
    assert [row.value for row in reader.all_records(store, "token")] == [key.encode() for key in keys]
    (page,) = store.read([ListRecords("token", after=keys[4], limit=1)])
    assert [row.key for row in page] == [keys[5]]
    assert list(reader.all_records(store, "nothing")) == []


def test_a_large_record_comes_back_as_it_was(store: Store) -> None:
    for value in (bytes(range(256)) * 800, b"", b"\x00"):
        store.commit([PutRecord("token", "a", value)])
        row = reader.get_record(store, "token", "a")
        assert row is not None
        assert row.value == value


def _followed(store: Store, *ops: Op) -> bool:
    """Whether a record is put that follows these ops."""
    key = str(len(list(reader.all_records(store, "noted"))))
    *_, receipt = store.commit([*ops, PutRecord("noted", key, b"", follows=True)])
    if isinstance(receipt, Refused):
        assert receipt == Refused(Refusal.CONFLICT)
        assert reader.get_record(store, "noted", key) is None
        return False
    assert isinstance(receipt, RecordPut)
    assert reader.get_record(store, "noted", key) == RecordRow(key, receipt.version, b"")
    return True


def test_what_is_noted_of_a_change_is_there_only_with_the_change(store: Store) -> None:
    of = graph(a="")
    store.commit(add_graph(of))
    assert not _followed(store)
    assert not _followed(store, create(graph(another="")))
    assert _followed(store, create(of))
    assert not _followed(store, create(of))
    assert not _followed(store, create(of, input=b"1"))
    assert _followed(store, create(of), create(of, "run-2"))
    assert not _followed(store, create(of, "run-3"), create(of))
    assert not _followed(store, create(of, "a NUL \u0000"))
    assert not _followed(store, AddNodes(RUN, 0))
    assert not _followed(store, AddNodes(RunId("nothing"), 0))
    assert not _followed(store, gate_op(allowed=(RunStatus.PAUSED,)))
    assert _followed(store, gate_op())
    assert not _followed(store, gate_op(token="another"))
    assert not _followed(store, Delete(RUN))
    end = Rewrite(RUN, TOKEN, (changed(node(store, 0), NodeStatus.CANCELLED),), Finish(RunStatus.CANCELLED, False))
    assert not _followed(store, end._replace(token=GateToken("another")))
    assert _followed(store, end)
    assert not _followed(store, gate_op())
    assert _followed(store, Delete(RUN))
    assert not _followed(store, Sweep())


def test_what_is_noted_of_another_record_is_there_only_with_it(store: Store) -> None:
    assert _followed(store, PutRecord("token", "a", b"", expected=0))
    assert not _followed(store, PutRecord("token", "a", b"1", expected=0))
    refused_follower = PutRecord("token", "b", b"", expected=0, follows=True)
    assert not _followed(store, PutRecord("token", "a", b"1", expected=0), refused_follower)
    assert _followed(store, PutRecord("token", "a", b""), refused_follower)


def test_a_change_that_is_asked_for_again_is_noted_once(store: Store) -> None:
    of = graph(a="")
    store.commit(add_graph(of))
    for op in (create(of), gate_op()):
        batch = [op, PutRecord("noted", type(op).__name__, b"{}", follows=True)]
        store.commit(batch)
        there = reader.get_record(store, "noted", type(op).__name__)
        assert there is not None
        store.commit(batch)
        assert reader.get_record(store, "noted", type(op).__name__) == there


def test_a_record_that_not_every_store_can_keep_is_refused(store: Store) -> None:
    for text in ("a NUL \u0000", "half a character \ud800", "long" * 200):
        for op in (PutRecord("token", text, b""), PutRecord(text, "a", b"")):
            assert refused(store, op) is Refusal.INVALID
    assert isinstance(store.commit([PutRecord("token", "a", b"", expected=2**63)])[0], Refused)


def test_of_many_who_change_a_record_at_once_none_is_lost(store: Store) -> None:
    store.commit([PutRecord("counter", "a", b"[]")])

    def add(who: int) -> None:
        for each in range(5):
            while True:
                row = reader.get_record(store, "counter", "a")
                assert row is not None
                value = json.dumps([*json.loads(row.value), [who, each]]).encode()
                (receipt,) = store.commit([PutRecord("counter", "a", value, expected=row.version)])
                if isinstance(receipt, RecordPut):
                    break

    in_threads(4, add)
    row = reader.get_record(store, "counter", "a")
    assert row is not None
    assert sorted(json.loads(row.value)) == [[who, each] for who in range(4) for each in range(5)]
