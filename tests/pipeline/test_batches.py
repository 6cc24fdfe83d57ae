"""What is done for thousands of small files at once: the same as one by one, and safe in the same way."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from stepwell import Engine, Pipeline
from stepwell.base.importable import exception_name
from stepwell.base.words import message_of
from stepwell.pipeline.building.build import Scanner
from stepwell.pipeline.building.found import GivenPipelines
from stepwell.pipeline.building.jobs import produce
from stepwell.pipeline.building.report import BuildTally
from stepwell.pipeline.building.results import NewState, new_states
from stepwell.pipeline.building.work import Runs
from stepwell.pipeline.looking import View
from stepwell.pipeline.states import single
from stepwell.pipeline.states.files.logged import LoggedMapping, store_changes
from stepwell.pipeline.states.files.root import Root
from stepwell.pipeline.states.files.store import FileStates
from stepwell.pipeline.states.port import Draft, Publication, Published
from stepwell.pipeline.states.records import Record, content_hash
from stepwell.pipeline.states.single import TICK_NS, Stamp
from stepwell.pipeline.states.snapshot import Snapshot
from tests.conformance.states import drafted, record_of


class _Asked:
    """As much of a context as `produce` asks for."""

    run_id = "0" * 32

    def __init__(self, pipeline: Pipeline) -> None:
        self._own_jobs = GivenPipelines([pipeline], lambda module: False)

    def check(self) -> None:
        pass


def _as_bytes(content: bytes) -> bytes:
    return content.upper()


def _as_text(content: str) -> str:
    return content.upper()


def _as_path(content: Path) -> bytes:
    return content.read_bytes()[::-1]


def _as_data(content: str) -> dict[str, str]:
    return {"text": content}


def _sometimes(content: str) -> str | None:
    if content == "fails":
        raise ValueError("no")
    return None if content == "nothing" else content


def _not_long(content: bytes) -> bool:
    return len(content) < 7


@pytest.mark.parametrize("body", [_as_bytes, _as_text, _as_path, _as_data, _sometimes])
@pytest.mark.parametrize("is_checked", [False, True])
def test_a_node_for_several_units_makes_what_nodes_for_one_make(
    root: Path, body: Callable[..., object], is_checked: bool
) -> None:
    pipeline = Pipeline("p", root=root)
    checks = {"min_size": 3, "validate": _not_long} if is_checked else {}
    pipeline.stage("s", input="in/{x}/{y}.txt", output="out/{y}-{x}.txt", version="1", **checks)(body)
    texts = {"a/1": "text", "a/2": "fails", "b/1": "nothing", "b/2": "", "b/3": "longer"}
    for entity, text in texts.items():
        (root / f"in/{entity}.txt").parent.mkdir(parents=True, exist_ok=True)
        (root / f"in/{entity}.txt").write_text(text)
    (root / "in/b/4.txt").symlink_to(root / "in/b/3.txt")
    units = [
        [entity.split("/"), {"": [f"in/{entity}.txt"]}] for entity in (*texts, "b/4", "c/gone", "../1", "a/.hidden")
    ]
    store = pipeline.store

    def states_of(units: list[Any]) -> tuple[list[Any], list[bytes], dict[str, Any]]:
        output: Any = produce(pipeline.home, "p", store.root_id, "s", units, _Asked(pipeline))  # type: ignore[arg-type]
        states = new_states(json.loads(json.dumps(output)), store.drafts)
        drafts = {each.draft.place for each in states}
        assert drafts == {str(path) for path in (root / "out").glob(".stepwell-*")}
        contents = [Path(each.draft.place).read_bytes() for each in states]
        for place in drafts:
            Path(place).unlink()
        records = [(unit, draft.address, record._replace(produced_at="")) for unit, draft, record in states]
        return records, contents, output["failed"]

    records: list[Any] = []
    contents: list[bytes] = []
    failed: dict[str, Any] = {}
    for unit in units:
        try:
            one = states_of([unit])
        except Exception as error:
            failed[f"s {'/'.join(unit[0])}"] = [exception_name(type(error)), message_of(error)]
            continue
        records += one[0]
        contents += one[1]
    assert states_of(units) == (records, contents, failed)


def test_a_node_for_several_units_leaves_what_changes_while_it_is_read(root: Path) -> None:
    def body(content: bytes) -> bytes:
        if content == b"first":
            (root / "in/a.txt").write_text("second")
        return content

    pipeline = Pipeline("p", root=root)
    pipeline.stage("s", input="in/{x}.txt", output="out/{x}.txt", version="1")(body)
    (root / "in").mkdir()
    (root / "in/a.txt").write_text("first")
    (root / "in/b.txt").write_text("other")
    units = [[[name], {"": [f"in/{name}.txt"]}] for name in "ab"]
    output = produce(pipeline.home, "p", pipeline.store.root_id, "s", units, _Asked(pipeline))  # type: ignore[arg-type]
    assert [each.unit for each in new_states(output, pipeline.store.drafts)] == ["s b"]
    assert not output["failed"]
    assert not list((root / "out").glob(".stepwell-*-a.txt"))


def test_a_draft_that_is_gone_leaves_no_record(root: Path) -> None:
    store = FileStates(str(root), "p")
    drafts = [store.drafts.open(f"out/{name}", name) for name in ("a", "b", "c")]
    for draft in drafts:
        store.drafts.write(draft, b"made")
    Path(drafts[1].place).unlink()
    record = Record("code", "", content_hash(b"made"), "", "", "p#s", "", {})
    answers = store.publish([Publication(draft, record, None) for draft in drafts])
    assert [(each.address, each.done, each.reason) for each in answers] == [
        ("out/a", True, ""),
        ("out/b", False, "lost"),
        ("out/c", True, ""),
    ]
    assert set(store.records.read("out")) == {"out/a", "out/c"}
    assert sorted(path.name for path in (root / "out").glob("[!.]*")) == ["a", "c"]


def test_what_a_body_read_is_the_content_of_a_file_that_has_not_changed_since() -> None:
    asked: list[str] = []

    def find(path: str, stamp: Stamp) -> tuple[str, Stamp]:
        asked.append(path)
        return "looked up", stamp

    snapshot = Snapshot(find)
    second = 1_000_000_000
    stamp = (5, 7 * second + 1, 7 * second + 1, 11)
    snapshot.tree["in"] = dict.fromkeys(("same", "changed", "recent", "gone"), stamp)
    snapshot.was_read("in/same", "read", stamp, 8 * second)
    snapshot.was_read("in/changed", "read", (5, 9 * second, 9 * second, 11), 8 * second)
    snapshot.was_read(
        "in/recent", "read", stamp, 7 * second + 2
    )  # it may have changed within the same tick of the clock
    snapshot.was_read("in/gone", "read", None, 8 * second)
    snapshot.was_read("in/unknown", "read", stamp, 8 * second)
    assert {name: snapshot.content_hash(f"in/{name}") for name in ("same", "changed", "recent", "unknown")} == {
        "same": "read",
        "changed": "looked up",
        "recent": "looked up",
        "unknown": None,
    }
    assert asked == ["in/changed", "in/recent"]
    assert "in/gone" not in snapshot.hashes


def test_a_first_build_reads_each_source_once(root: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = Pipeline("p", root=root)
    pipeline.stage("copy", input="in/{x}", output="out/{x}", version="1")(_same)
    pipeline.stage("again", input="out/{x}", output="end/{x}", version="1")(_same)
    (root / "in").mkdir()
    for number in range(3):
        (root / f"in/{number}").write_text(f"text {number}")
    time.sleep(2 * TICK_NS / 1e9)  # what was written a moment before is read again
    hashed: list[str] = []

    def hash_file(file: str, folder: int) -> str:
        hashed.append(os.readlink(f"/proc/self/fd/{folder}") + f"/{file}")
        return single.hash_file(file, folder)

    monkeypatch.setattr("stepwell.pipeline.states.files.local.hash_file", hash_file)
    assert len(pipeline.build(engine=engine).produced) == 6
    assert not [file for file in hashed if "/in/" in file]


def test_what_is_published_was_synced(root: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: set[Draft] = set()
    published: set[Draft] = set()
    sync, publish = FileStates.sync, FileStates.publish

    def noted_sync(store: FileStates, drafts: Iterable[Draft]) -> None:
        given = list(drafts)
        sync(store, given)
        synced.update(given)

    def checked_publish(
        store: FileStates, publications: Sequence[Publication], check: Callable[[], object]
    ) -> list[Published]:
        drafts = {each.draft for each in publications}
        assert drafts <= synced
        published.update(drafts)
        return publish(store, publications, check)

    monkeypatch.setattr(FileStates, "sync", noted_sync)
    monkeypatch.setattr(FileStates, "publish", checked_publish)
    pipeline = Pipeline("p", root=root)
    pipeline.stage("copy", input="in/{x}", output="out/{x}", version="1")(_same)
    (root / "in").mkdir()
    (root / "in/a").write_text("text")
    assert len(pipeline.build(engine=engine).produced) == 1
    draft = pipeline.store.drafts.open("out/b", "left")  # by a process that died
    pipeline.store.drafts.write(draft, b"made")
    record = Record("code", "", content_hash(b"made"), "", "", "p#copy", "b", {})
    with ExitStack() as stack:
        publisher = Runs(pipeline, engine, stack, {}).publisher
        publisher.recover([NewState("copy b", draft, record)], {})
    assert {draft.address for draft in published} == {"out/a", "out/b"}
    assert (root / "out/b").read_text() == "made"


def test_nothing_is_published_after_a_build_was_given_up(root: Path, engine: Engine) -> None:
    may_end = threading.Event()

    def copy(content: bytes) -> bytes:
        may_end.wait(30)
        return content

    def give_up(_: BuildTally) -> None:
        raise ZeroDivisionError

    pipeline = Pipeline("p", root=root)
    pipeline.stage("copy", input="in/{x}", output="out/{x}", version="1")(copy)
    (root / "in").mkdir()
    (root / "in/a").write_text("text")
    with Scanner(pipeline, engine, progress=give_up) as scanner:
        with pytest.raises(ZeroDivisionError):
            scanner.scan()
        may_end.set()
        engine.get(scanner._runs.started[0]).wait()
        until = time.monotonic() + 30
        while scanner._runs._ended.empty() and time.monotonic() < until:
            time.sleep(0.001)
        assert not (root / "out/a").exists(), "somebody published without the lease"
        scanner._progress = None
        assert not scanner.scan().left
    assert (root / "out/a").read_text() == "text"


def test_a_build_that_is_given_up_ends_after_what_is_being_published(
    root: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    begun = threading.Event()

    def publish(*_: object) -> list[Published]:
        begun.set()
        time.sleep(0.1)
        steps.append("published")
        return []

    pipeline = Pipeline("p", root=root)
    pipeline.stage("copy", input="in/{x}", output="out/{x}", version="1")(_same)
    (root / "in").mkdir()
    (root / "in/a").write_text("text")
    with ExitStack() as stack:
        runs = Runs(pipeline, engine, stack, {})
        monkeypatch.setattr(pipeline.store, "publish", publish)
        with runs.publisher.during({}, ()):
            runs.start(list(View(pipeline).model.all_units()))
            assert begun.wait(30)
        steps.append("ended")
    assert steps == ["published", "ended"]


def _same(content: bytes) -> bytes:
    return content


def test_a_log_is_folded_as_it_would_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mapping = LoggedMapping(Root(str(tmp_path)), "x", "things")
    values: dict[str, Any] = {
        f'key "{number}", \\"value": é': {"n": number, "in": {"value": ["}}", '","value":']}} for number in range(700)
    }
    store_changes([(mapping, values)])  # as one file
    more = {key: {"again": key} for key in list(values)[::2]}
    gone = dict.fromkeys(list(values)[1:400:4])
    for changes in (more, gone, {"last": 7}):
        store_changes([(mapping, changes)])
    with open(mapping.root.place(mapping.log_path), "ab") as file:
        file.write(b'{"key":"torn","value":{"a":{}}\n{ "value": {"b": 1}, "key": "by hand" }\n')
    added = {"by hand": {"b": 1}}
    expected = mapping.read()
    assert expected == {key: value for key, value in (values | more | gone).items() if value} | {"last": 7} | added
    monkeypatch.setattr("stepwell.pipeline.states.files.logged.FOLD_BYTES", 0)
    mapping.fold()
    assert not Path(mapping.root.place(mapping.log_path)).exists()
    assert mapping.read() == expected


def test_manifests_whose_logs_have_grown_are_folded_once_all_is_published(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stepwell.pipeline.states.files.logged.SMALL_BYTES", -1)
    monkeypatch.setattr("stepwell.pipeline.states.files.logged.FOLD_BYTES", 0)
    states = FileStates(str(root))
    for address in ("out/a", "out/b", "other/a"):
        draft = drafted(states, address, b"text")
        assert states.publish([Publication(draft, record_of(b"text"), None)])[0].done
    assert (root / "out/.manifest.log").exists()
    states.tidy()
    for folder, names in (("out", ["a", "b"]), ("other", ["a"])):
        assert not (root / folder / ".manifest.log").exists()
        assert list(json.loads((root / folder / ".manifest.json").read_text())["states"]) == names
