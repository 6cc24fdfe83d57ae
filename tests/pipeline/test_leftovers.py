"""What a crash left of publishing is finished if the record says so; whatever else it is, what can be seen stays as it is."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from stepwell.pipeline.states.files.store import FileStates
from stepwell.pipeline.states.port import Publication
from stepwell.pipeline.states.records import Record, content_hash, members_hash
from tests.conformance.states import drafted, everything, record_of

Content = bytes | Mapping[str, bytes] | None
ONE, TWO, BOTH = {"1.txt": b"one"}, {"2.txt": b"two"}, {"1.txt": b"one", "2.txt": b"two"}
FILE, FOLDER, MEMBERS, TOP = "out/a.txt", "out/a/", "out/{n}.txt", "top.txt"

LEFT: list[tuple[str, str, Content, Content, Content, Content, Content]] = [
    # what is left, address, draft, what the record says, what is there -> what is there then, what is kept aside
    ("recorded", FILE, b"new", b"new", None, b"new", None),
    ("recorded over the former", FILE, b"new", b"new", b"old", b"new", b"old"),
    ("recorded and there", FILE, b"new", b"new", b"new", b"new", None),
    ("recorded by somebody else since", FILE, b"old", b"new", b"new", b"new", None),
    ("of a state that is gone", FILE, b"old", b"new", None, None, None),
    ("not recorded", FILE, b"new", None, None, None, None),
    ("not recorded beside a file", FILE, b"new", None, b"old", b"old", None),
    ("recorded", TOP, b"new", b"new", None, b"new", None),
    ("not recorded beside a file", TOP, b"new", None, b"old", b"old", None),
    ("recorded", FOLDER, BOTH, BOTH, None, BOTH, None),
    ("recorded over the former", FOLDER, BOTH, BOTH, ONE, BOTH, ONE),
    ("recorded by somebody else since", FOLDER, ONE, BOTH, BOTH, BOTH, None),
    ("of another content", FOLDER, {"1.txt": b"old"}, BOTH, BOTH, BOTH, None),
    ("not recorded", FOLDER, BOTH, None, ONE, ONE, None),
    ("recorded", MEMBERS, BOTH, BOTH, None, BOTH, None),
    ("half renamed", MEMBERS, TWO, BOTH, ONE, BOTH, None),
    ("renamed", MEMBERS, {}, BOTH, BOTH, BOTH, None),
    ("of another content", MEMBERS, {"2.txt": b"old"}, BOTH, BOTH, BOTH, None),
    ("with a file that is not recorded", MEMBERS, {**TWO, "3.txt": b"three"}, BOTH, ONE, ONE, None),
    ("not recorded", MEMBERS, BOTH, None, ONE, ONE, None),
]
FINISHED = {"recorded", "recorded over the former", "recorded and there", "half renamed"}


def _record(content: Content) -> Record:
    if isinstance(content, bytes):
        return record_of(content)
    members = {name: content_hash(each) for name, each in (content or {}).items()}
    return record_of(b"")._replace(content_hash=members_hash(members), members=members)


def _put(states: FileStates, address: str, content: Content) -> None:
    base = address.removesuffix("{n}.txt")
    for name, each in ({"": content} if isinstance(content, bytes) else content or {}).items():
        states.files.put(base + name, each)


def _content(folder: Path, address: str) -> Content:
    place = folder / address.removesuffix("{n}.txt")
    if place.is_file():
        return place.read_bytes()
    found = {each.name: each.read_bytes() for each in place.glob("[!.]*.txt")} if place.is_dir() else {}
    return found or None


def _drafts(root: Path) -> list[str]:
    return [path.name for folder in (root, root / "out") for path in folder.glob(".stepwell-*")]


@pytest.mark.parametrize("row", LEFT, ids=lambda row: f"{row[1]} {row[0]}")
def test_a_draft_is_finished_only_if_it_is_what_the_record_says(root: Path, row: tuple[str, str, Content, ...]) -> None:
    what, address, draft, recorded, there, expected, aside = row
    states = FileStates(str(root))
    _put(states, address, there)
    drafted(states, address, draft if draft is not None else {})
    if recorded is not None:
        states.records.change({address: _record(recorded)})
    for scan in range(2):  # the second has nothing to do
        finished = states.finish(states.files.walk(everything))
        assert finished == ([address] if what in FINISHED and not scan else [])
        assert _content(root, address) == expected
        assert bool(_drafts(root)) == (what not in FINISHED)
        kept = [_content(folder, address) for folder in (root / ".stepwell/aside").glob("*")]
        assert kept == ([] if aside is None else [aside])
    assert states.records.find([address]) == ({} if recorded is None else {address: _record(recorded)})


@pytest.mark.parametrize("address", [FILE, FOLDER, MEMBERS])
def test_a_draft_that_nobody_finishes_is_removed_after_a_day(root: Path, address: str) -> None:
    states = FileStates(str(root))
    draft = drafted(states, address, b"new" if address == FILE else BOTH)
    manifest = root / "out/.stepwell-0123-.manifest.json"  # whoever writes one holds the lock, so that it died
    for age, left in ((86_000, True), (87_000, False)):
        manifest.write_text("{")
        os.utime(draft.place, (time.time() - age,) * 2)
        states.finish(states.files.walk(everything))
        assert Path(draft.place).exists() == left
        assert not manifest.exists()


def test_only_what_is_recorded_and_has_a_draft_is_about_to_be_seen(root: Path) -> None:
    """While another process publishes, nobody calls its states missing."""
    states = FileStates(str(root))
    for address, content in ((FILE, b"new"), (FOLDER, BOTH), (TOP, b"top")):
        drafted(states, address, content)
        states.records.change({address: _record(content), f"out/b{address[-1:]}": record_of(b"other")})
    drafted(states, "out/c.txt", b"not recorded")
    assert states.snapshot(everything).publishing == {FILE, FOLDER, TOP}


@pytest.mark.parametrize("address", [FILE, FOLDER, MEMBERS])
def test_a_draft_that_is_refused_or_gone_leaves_what_is_there(root: Path, address: str) -> None:
    states = FileStates(str(root))
    old, new = (b"old", b"new") if address == FILE else (ONE, {"1.txt": b"new"})
    _put(states, address, old)
    draft = drafted(states, address, new)
    (refused,) = states.publish([Publication(draft, _record(new), None)])
    assert (refused.done, refused.reason) == (False, "unrecorded")
    assert not Path(draft.place).exists()
    (lost,) = states.publish([Publication(draft, _record(new), None, replace=True)])
    assert (lost.done, lost.reason) == (False, "lost")
    assert _content(root, address) == old
    assert states.records.find([address]) == {}
    asked = drafted(states, address, new, "t2")
    assert states.publish([Publication(asked, _record(new), None, replace=True)])[0].done
    assert _content(root, address) == new
