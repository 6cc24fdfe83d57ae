"""What every store of states must do, for authors of such stores.

class TestMyStates(StateStoreConformance):
    @pytest.fixture
    def open_states(self, tmp_path):
        return lambda: MyStates(tmp_path / "states")

    def kept_aside(self, store):
        return store.contents_of_what_was_replaced()
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from stepwell.errors import PipelineBusy, UnsafePath
from stepwell.pipeline.states.notes import change_failures, keep_code, known_code, read_failures
from stepwell.pipeline.states.port import Draft, Publication, StateStore
from stepwell.pipeline.states.records import Record, StageFailure, content_hash, members_hash

Open = Callable[[], StateStore]


def record_of(content: bytes, **changes: Any) -> Record:
    made = Record(
        "code", "config", content_hash(content), "inputs", "2026-01-15T10:00:00Z", "p#stage", "x", {"in/x": "0"}
    )
    return made._replace(**changes)


def members_record(contents: Mapping[str, bytes]) -> Record:
    members = {name: content_hash(each) for name, each in contents.items()}
    return record_of(b"", content_hash=members_hash(members), members=members)


def drafted(store: StateStore, address: str, content: bytes | Mapping[str, bytes], token: str = "t1") -> Draft:
    draft = store.drafts.open(address, token)
    if isinstance(content, bytes):
        Path(draft.place).write_bytes(content)
    else:
        for name, each in content.items():
            file = Path(draft.place, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(each)
    return store.drafts.named(address, store.drafts.keep(draft))


def everything(components: object) -> bool:
    return True


class StateStoreConformance:
    """Tests that a store passes whole; `open_states` opens the same store as often as it is called."""

    def kept_aside(self, store: Any) -> list[bytes]:
        """What the store keeps of what it replaced or removed although nobody had recorded it."""
        raise NotImplementedError

    def test_a_source_is_put_read_and_listed(self, open_states: Open) -> None:
        store = open_states()
        store.files.put("in/a.txt", b"one")
        store.files.put("in/a.txt", b"two")
        assert store.files.read("in/a.txt") == store.files.local("in/a.txt").read_bytes() == b"two"
        assert store.files.exists("in/a.txt")
        assert not store.files.exists("in/b.txt")
        snapshot = open_states().snapshot(everything)
        assert list(snapshot.tree["in"]) == ["a.txt"]
        store.files.put("in/deep/er/b.txt", b"three")
        assert set(open_states().snapshot(everything).tree) - {""} == {"in", "in/deep", "in/deep/er"}
        assert snapshot.content_hash("in/a.txt") == content_hash(b"two")
        assert snapshot.content_hash("in/b.txt") is None
        with pytest.raises(FileNotFoundError):
            store.files.read("in/b.txt")

    @pytest.mark.parametrize("path", ["../a", "/a", "a/../../b", "a//b", ".a", "a/.b", "a\0", ""])
    def test_no_path_leads_elsewhere(self, open_states: Open, path: str) -> None:
        store = open_states()
        for ask in (
            lambda: store.files.put(path, b""),
            lambda: store.files.read(path),
            lambda: store.drafts.open(path, "t"),
        ):
            with pytest.raises(UnsafePath):
                ask()

    def test_a_draft_is_seen_when_it_is_published(self, open_states: Open) -> None:
        store = open_states()
        draft = drafted(store, "out/a.txt", b"made")
        assert not store.files.exists("out/a.txt")
        assert draft.place.endswith(".txt")
        (answer,) = store.publish([Publication(draft, record_of(b"made"), None)])
        assert answer.done
        assert open_states().files.read("out/a.txt") == b"made"
        assert open_states().records.find(["out/a.txt", "out/b.txt"]) == {"out/a.txt": record_of(b"made")}
        assert not os.path.exists(draft.place)

    def test_publishing_again_changes_nothing(self, open_states: Open) -> None:
        store = open_states()
        publication = Publication(drafted(store, "out/a.txt", b"made"), record_of(b"made"), None)
        assert store.publish([publication])[0].done
        assert store.publish([publication])[0].done
        newer = Publication(drafted(store, "out/a.txt", b"newer", "t2"), record_of(b"newer"), record_of(b"made"))
        assert store.publish([newer])[0].done
        late = store.publish([publication])[0]  # of a worker that comes back
        assert not late.done
        assert store.files.read("out/a.txt") == b"newer"
        assert store.records.find(["out/a.txt"])["out/a.txt"].content_hash == content_hash(b"newer")

    def test_who_lost_the_lease_meanwhile_publishes_nothing(self, open_states: Open) -> None:
        """The lease is looked at when nobody else can publish: before that, another process may take it over and publish."""
        store, other = open_states(), open_states()
        with store.lease("p", 1) as holds:
            assert store.publish([Publication(drafted(store, "out/b.txt", b"b"), record_of(b"b"), None)], holds)[0].done
        late = Publication(drafted(store, "out/a.txt", b"older"), record_of(b"older"), record_of(b"before"))
        assert other.publish([Publication(drafted(other, "out/a.txt", b"newer", "t2"), record_of(b"newer"), None)])[
            0
        ].done

        def check() -> None:
            raise PipelineBusy("another process has taken over", pipeline="p")

        with pytest.raises(PipelineBusy):
            store.publish([late], check)
        assert open_states().files.read("out/a.txt") == b"newer"
        assert open_states().records.find(["out/a.txt"]) == {"out/a.txt": record_of(b"newer")}

    def test_what_nobody_recorded_is_not_replaced_unasked(self, open_states: Open) -> None:
        store = open_states()
        store.files.put("out/a.txt", b"by hand")
        (answer,) = store.publish([Publication(drafted(store, "out/a.txt", b"made"), record_of(b"made"), None)])
        assert (answer.done, answer.reason) == (False, "unrecorded")
        assert store.files.read("out/a.txt") == b"by hand"
        asked = Publication(drafted(store, "out/a.txt", b"made"), record_of(b"made"), None, replace=True)
        assert store.publish([asked])[0].done
        assert store.files.read("out/a.txt") == b"made"

    @pytest.mark.parametrize("address", ["site/a/", "chapters/a/{n}.txt"])
    @pytest.mark.parametrize("there", ["1.txt", "2.txt"])
    def test_one_file_that_nobody_recorded_keeps_a_state_of_several_from_being_published(
        self, open_states: Open, address: str, there: str
    ) -> None:
        store = open_states()
        place = address.partition("{")[0] + there
        store.files.put(place, b"by hand")
        record = members_record({"1.txt": b"one", "2.txt": b"two"})
        draft = drafted(store, address, {"1.txt": b"one", "2.txt": b"two"})
        (answer,) = store.publish([Publication(draft, record, None)])
        assert (answer.done, answer.reason, store.files.read(place)) == (False, "unrecorded", b"by hand")
        draft = drafted(store, address, {"1.txt": b"one", "2.txt": b"two"}, "t2")
        assert store.publish([Publication(draft, record, None, replace=True)])[0].done
        assert self.kept_aside(store) == [b"by hand"]
        store.files.put(place, b"again")  # what is removed as a whole, too
        assert store.remove([address]) == [address]
        assert sorted(self.kept_aside(store)) == [b"again", b"by hand"]
        assert not store.files.exists(place)

    @pytest.mark.parametrize("address", ["site/a/", "chapters/a/{n}.txt"])
    @pytest.mark.parametrize("changed", ["1.txt", "2.txt"])
    def test_what_somebody_changed_of_several_files_is_kept_aside(
        self, open_states: Open, address: str, changed: str
    ) -> None:
        store = open_states()
        first, second = {"1.txt": b"one", "2.txt": b"two"}, {"2.txt": b"two", "3.txt": b"three"}
        former = members_record(first)
        assert store.publish([Publication(drafted(store, address, first), former, None)])[0].done
        store.files.put(address.partition("{")[0] + changed, b"by hand")
        again = Publication(drafted(store, address, second, "t2"), members_record(second), former)
        assert store.publish([again])[0].done
        assert b"by hand" in self.kept_aside(store)
        assert store.snapshot(everything).records == {address: members_record(second)}

    @pytest.mark.parametrize("address", ["site/a/", "chapters/a/{n}.txt"])
    def test_several_files_are_one_state(self, open_states: Open, address: str) -> None:
        store = open_states()
        base = "site/a/" if address == "site/a/" else "chapters/a/"
        for contents in ({"1.txt": b"one", "2.txt": b"two"}, {"2.txt": b"two", "3.txt": b"three"}):
            record = members_record(contents)
            before = store.records.find([address]).get(address)
            assert store.publish([Publication(drafted(store, address, contents), record, before)])[0].done
            assert store.records.find([address]) == {address: record}
        assert not store.files.exists(f"{base}1.txt")
        assert store.files.read(f"{base}3.txt") == b"three"
        assert store.files.directory_hash(base, ()) == record.content_hash
        assert store.remove([address]) == [address]
        assert not store.files.exists(f"{base}2.txt")
        assert store.records.find([address]) == {}

    def test_records_and_failures_are_changed_and_forgotten(self, open_states: Open) -> None:
        store = open_states()
        store.files.put("out/a.txt", b"by hand")
        store.records.change({"out/a.txt": record_of(b"by hand")})
        assert open_states().snapshot(everything).records == {"out/a.txt": record_of(b"by hand")}
        store.records.change({"out/a.txt": None})
        assert open_states().snapshot(everything).records == {}
        assert store.files.read("out/a.txt") == b"by hand"
        failure = StageFailure("boom", "ValueError", 2, 1.0, 2.0, None, "code:config:inputs", "run")
        change_failures(store.notes, "p", {"stage a": failure, "stage b": failure, "stage": failure})
        change_failures(store.notes, "q", {"stage a": failure._replace(attempts=1)})
        change_failures(store.notes, "p", {"stage b": None, "stage c": None})
        assert read_failures(open_states().notes, "p") == {"stage a": failure, "stage": failure}
        change_failures(store.notes, "p", {"stage a": None})
        assert read_failures(open_states().notes, "p") == {"stage": failure}
        assert read_failures(open_states().notes, "q") == {"stage a": failure._replace(attempts=1)}

    def test_many_are_published_at_once(self, open_states: Open) -> None:
        store = open_states()
        publications = [
            Publication(drafted(store, f"out/{number}.txt", b"%d" % number), record_of(b"%d" % number), None)
            for number in range(300)
        ]
        assert all(answer.done for answer in store.publish(publications))
        snapshot = open_states().snapshot(everything)
        assert len(snapshot.records) == len(snapshot.tree["out"]) == 300
        assert snapshot.content_hash("out/7.txt") == content_hash(b"7")

    def test_one_scanner_at_a_time(self, open_states: Open) -> None:
        first, second = open_states(), open_states()
        with first.lease("p", 0) as holds:
            with pytest.raises(PipelineBusy, match="is being scanned by process"), second.lease("p", 0):
                pytest.fail("two have the lease")
            with second.lease("another", 0):
                assert holds()
        with second.lease("p", 0) as theirs:
            assert theirs()

    def test_a_change_is_told_unless_the_system_tells_it(self, open_states: Open) -> None:
        store = open_states()
        seen = [store.files.change_mark()]
        if seen != [None]:
            other = open_states()
            for change in (
                lambda: store.files.put("in/a", b"1"),
                lambda: other.files.put("in/a", b"2"),
                lambda: other.records.change({"in/a": record_of(b"2")}),
                lambda: store.remove(["in/a"]),
            ):
                change()
                seen.append(store.files.change_mark())
            assert len(set(map(repr, seen))) == len(seen)
            assert store.files.change_mark() == seen[-1]

    def test_a_draft_of_which_only_the_name_is_left_is_discarded(self, open_states: Open) -> None:
        store = open_states()
        draft = store.drafts.open("out/a.txt", "t1")
        Path(draft.place).write_bytes(b"made")
        name = store.drafts.keep(draft)
        assert sum(len(folder.temporary) for folder in store.files.walk(everything)) == 1
        other = open_states()
        other.drafts.discard(other.drafts.named("", name))
        assert sum(len(folder.temporary) for folder in store.files.walk(everything)) == 0
        (answer,) = store.publish([Publication(draft, record_of(b"made"), None)])
        assert (answer.done, answer.reason) == (False, "lost")
        assert not store.files.exists("out/a.txt")

    def test_one_root_one_lease_and_notes(self, open_states: Open) -> None:
        store = open_states()
        assert open_states().root_id == store.root_id
        number = store.lease_number("p")
        with store.lease("p", 0) as holds:
            assert holds()
            assert store.lease_number("p") % 2 == 1
        assert store.lease_number("p") % 2 == 0
        assert store.lease_number("p") > number
        keep_code(store.notes, "hash", {"m:f": "1"})
        assert known_code(open_states().notes, "hash") == {"m:f": "1"}
        assert known_code(open_states().notes, "other") is None
        store.notes.change("triggers", {"t out/a": "1"})
        assert open_states().notes.read("triggers") == {"t out/a": "1"}
