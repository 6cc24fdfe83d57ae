"""What the last scan found is used only while it is still true: the same with its cache as without."""

from __future__ import annotations

import json
import shutil
from array import array
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell import Builder, Engine, Pipeline
from stepwell.pipeline.building.verdict import known_status, list_everything, nothing_to_do
from stepwell.pipeline.states.cache import EMPTY, UNKNOWN, Cached, read_cache, written_cache
from stepwell.pipeline.states.files.logged import LoggedMapping, store_changes
from stepwell.pipeline.states.files.root import Root
from stepwell.pipeline.states.listing import Folder


def _refuses(content: bytes) -> bool:
    return False


def _body(text: str) -> str:
    return text


def pipeline_in(root: Path, **changed: Any) -> Pipeline:
    pipeline = Pipeline("p", root=root)
    options = {"input": "in/{x}.txt", "output": "out/{x}.txt", "version": "1", **changed}
    pipeline.stage("copy", **options)(_body)
    return pipeline


@pytest.mark.parametrize(
    "changed",
    [
        {"min_size": 100},
        {"validate": _refuses},
        {"config": {"a": 1}},
        {"version": "2"},
        {"version": None},
        {"version": None, "uses": ["apsw"]},
        {"output": "out/{x}.md"},
        {"input": "in/{x:[ab]}.txt"},
        {"input": "in/{x:[a]}.txt"},
        {"input": {"text": "in/{x}.txt", "more": "more/{x}.txt"}},
        {"input": "more/{x}.txt"},
        {"quiet": 3_600},
        {"entities": lambda: ["a", "c"]},
        {"limit": 1, "priority": 5},
    ],
    ids="-".join,
)
def test_a_changed_stage_is_judged_as_without_a_cache(tmp_path: Path, engine: Engine, changed: dict[str, Any]) -> None:
    root, other = tmp_path / "root", tmp_path / "other"
    for name in ("in/a.txt", "in/b.txt", "more/a.txt", "more/c.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("text")
    pipeline_in(root).build(engine=engine)
    assert pipeline_in(root).build(engine=engine).produced == ()
    shutil.copytree(root, other)
    (other / ".stepwell/p.cache").unlink()
    with_cache, without = pipeline_in(root, **changed), pipeline_in(other, **changed)
    assert with_cache.status().to_dict() == without.status().to_dict()
    assert known_status(with_cache) in (None, without.status().to_dict())
    assert with_cache.plan() == without.plan()
    if nothing_to_do(with_cache, list_everything(with_cache)) is not None:
        assert without.plan().will_run == ()


FINGERPRINT: dict[str, tuple[dict[str, Any], bool]] = {
    # what is other in a stage, and whether what the last scan found may not hold any more
    "nothing": ({}, False),
    "how many at once, and which first": ({"limit": 1, "priority": 5}, False),
    "when it is tried again": ({"back_off": (1,)}, False),
    "input": ({"input": "in/{x:[ab]}.txt"}, True),
    "the name of an input": ({"input": {"text": "in/{x}.txt"}}, True),
    "one more input": ({"input": {"text": "in/{x}.txt", "more": "more/{x}.txt"}}, True),
    "output": ({"output": "out/{x}.md"}, True),
    "the name of an output": ({"output": {"text": "out/{x}.txt"}}, True),
    "quiet": ({"quiet": 5}, True),
    "entities": ({"entities": lambda: ["a"]}, True),
    "code": ({"version": "2"}, True),
    "config": ({"config": {"a": 1}}, True),
    "validate": ({"validate": _refuses}, True),
    "min_size": ({"min_size": 1}, True),
}


def _nothing() -> str:
    return ""


@pytest.mark.parametrize("name", FINGERPRINT)
def test_a_verdict_depends_on_everything_that_decides_a_status(tmp_path: Path, name: str) -> None:
    changed, counts = FINGERPRINT[name]

    def fingerprint(**options: Any) -> str:
        pipeline = Pipeline("p", root=tmp_path)
        given = {"input": "in/{x}.txt", "output": "out/{x}.txt", "version": "1", **options}
        pipeline.stage("copy", **given)(_nothing)
        return pipeline.code.fingerprint()

    assert (fingerprint(**changed) != fingerprint()) == counts
    assert fingerprint(**changed) == fingerprint(**changed)


def test_a_verdict_depends_on_every_other_field_of_its_stages_and_on_the_version_of_stepwell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = pipeline_in(tmp_path)
    stage = pipeline.stages["copy"]
    changes: list[dict[str, Any]] = [
        {}, {"gates": frozenset(stage.inputs)}, {"collect": ("x",)}, {"filters": {"": "hasFiles"}}, {"name": "other"},
    ]  # fmt: skip
    prints = []
    for changed in changes:
        monkeypatch.setitem(pipeline.stages, "copy", stage._replace(**changed))
        if "name" in changed:
            monkeypatch.setitem(pipeline.stages, "other", pipeline.stages["copy"])
        prints.append(pipeline.code.fingerprint())
    monkeypatch.setattr("stepwell.pipeline.codehash.stages.__version__", "another")
    prints.append(pipeline.code.fingerprint())
    assert len(set(prints)) == len(changes) + 1


def _told(event: dict[str, Any]) -> Builder:
    builder = Builder(f"told-{event['entity']}")
    builder.node("note", job=_body, args={"text": event["entity"]})
    return builder


def _told_otherwise(event: dict[str, Any]) -> Builder:
    return _told({**event, "entity": f"other-{event['entity']}"})


@pytest.mark.parametrize(
    "changed",
    [
        {"existing": True},
        {"filter": "entity == 'b'"},
        {"state": "in/{x}.txt"},
        {"workflow": _told_otherwise},
        {"n": "new"},
    ],
    ids=lambda options: next(iter(options)),
)
def test_a_changed_trigger_starts_what_it_starts_without_a_cache(tmp_path: Path, changed: dict[str, Any]) -> None:
    """Nothing else has changed, so that nothing but the fingerprint of the verdict tells that there is anything to do."""

    def make(root: Path, **options: Any) -> Pipeline:
        pipeline = pipeline_in(root)
        given = {"n": "told", "state": "copy", "workflow": _told, "filter": "entity == 'a'", **options}
        pipeline.trigger(given.pop("n"), **given)
        return pipeline

    root, other, started = tmp_path / "root", tmp_path / "other", []
    for name in ("in/a.txt", "in/b.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("text")
    with Engine(f"sqlite:///{tmp_path}/first.db") as engine:
        pipeline_in(root).build(engine=engine)
        make(root).build(engine=engine)
    unchanged = make(root)
    assert nothing_to_do(unchanged, list_everything(unchanged)) is not None
    shutil.copytree(root, other)
    (other / ".stepwell/p.cache").unlink()
    for place in (root, other):
        pipeline = make(place, **changed)
        assert nothing_to_do(pipeline, list_everything(pipeline)) is None
        with Engine(f"sqlite:///{tmp_path}/{place.name}.db") as engine:
            pipeline.build(engine=engine)
            (place / "in/b.txt").write_text("changed")
            make(place, **changed).build(engine=engine)
            started.append(sorted(run.workflow for run in engine.runs() if run.workflow.startswith("told")))
    assert started[0] == started[1]


@pytest.mark.parametrize("small", [-1, 50])
def test_a_torn_log_has_what_was_written_whole(tmp_path: Path, small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever byte a crash cuts the log at, every change that is whole is read, also after more was written."""
    monkeypatch.setattr("stepwell.pipeline.states.files.logged.SMALL_BYTES", small)
    root = Root(str(tmp_path))
    changes: list[dict[str, Any]] = [
        {"a": 1, "é\n": {"value": "}"}},
        {"a": {"b": [2]}, "c": "\\"},
        {"é\n": None, "d": 4},
    ]
    for change in changes:
        store_changes([(LoggedMapping(root, "log", "things"), change)])
    log, base = tmp_path / "log.log", tmp_path / "log.json"
    whole = log.read_bytes()
    kept = base.read_bytes() if base.exists() else None
    begun = json_values(kept)
    for cut in range(len(whole) + 1):
        log.write_bytes(whole[:cut])
        if kept is not None:
            base.write_bytes(kept)
        expected = dict(begun)
        for line in whole[:cut].split(b"\n"):
            value = decoded(line)
            if value is not None:
                expected[value["key"]] = value["value"]
        expected = {key: value for key, value in expected.items() if value is not None}
        assert LoggedMapping(root, "log", "things").read() == expected
        again = LoggedMapping(root, "log", "things")
        store_changes([(again, {"z": cut})])
        assert LoggedMapping(root, "log", "things").read() == expected | {"z": cut}
        monkeypatch.setattr("stepwell.pipeline.states.files.logged.FOLD_BYTES", 0)
        again.fold()
        assert LoggedMapping(root, "log", "things").read() == expected | {"z": cut}
        base.unlink(missing_ok=True)


def decoded(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def json_values(content: bytes | None) -> dict[str, Any]:
    return {} if content is None else decoded(content)["things"]


NAMES = ("a", "b", "c", "d")
ENTRY = st.tuples(st.integers(0, 2), st.sampled_from((None, "1" * 64, "2" * 64)), st.booleans())
"""The stamp of a file (any number will do), its hash if somebody asked for it, and whether it may change and keep its stamp."""
Entries = dict[str, tuple[int, str | None, bool]]


def _cached(entries: Entries) -> Cached:
    stamps = array("Q", [number for stamp, _, _ in entries.values() for number in (9, stamp, stamp, 7)])
    hashes = b"".join(UNKNOWN if each is None else bytes.fromhex(each) for _, each, _ in entries.values())
    recent = [at for at, (_, _, is_recent) in enumerate(entries.values()) if is_recent]
    return Cached(list(entries), stamps.tobytes(), hashes, recent, [[1, 2, 3, 4], None], "of the manifest")


def _folder(entries: Entries) -> Folder:
    stamps = array("Q", [number for stamp, _, _ in entries.values() for number in (9, stamp, stamp, 7)])
    return Folder("f", list(entries), stamps, [], [], [], [None, None])


ENTRIES = st.dictionaries(st.sampled_from(NAMES), ENTRY)


@given(ENTRIES, ENTRIES, st.sets(st.sampled_from(NAMES)))
def test_what_is_cached_of_a_directory_is_what_was_found_there(whole: Entries, other: Entries, some: set[str]) -> None:
    cached = _cached(whole)
    sure = {name: ((9, stamp, stamp, 7), _cached({name: each}).hashes.hex()) for name, each in whole.items()
            for stamp, digest, is_recent in [each] if digest is not None and not is_recent}  # fmt: skip
    assert cached.known(some) == {name: known for name, known in sure.items() if name in some}
    assert cached.known(NAMES) == sure
    changed = {name for name, (stamp, _, _) in other.items() if name in whole and whole[name][0] != stamp}
    found = cached.changed(_folder(other))
    assert (None if found is None else set(found)) == (changed if whole.keys() == other.keys() else None)
    verdict = {"stale": 1}
    written = written_cache([("f", cached), ("\udcff", _cached(other))], verdict)
    assert read_cache(written) == ({"f": cached, "\udcff": _cached(other)}, verdict)
    for cut in range(len(written)):
        assert read_cache(written[:cut]) == EMPTY


@given(ENTRIES, ENTRIES, st.sets(st.integers(0, 3)))
def test_a_part_replaces_what_it_has_and_leaves_the_rest(whole: Entries, found: Entries, still: set[int]) -> None:
    part = {name: entry for name, entry in found.items() if name in whole}
    doubtful = {at for at, (_, _, is_recent) in enumerate(whole.values()) if is_recent} & still
    expected = {
        name: part.get(name, (stamp, digest, at in doubtful))
        for at, (name, (stamp, digest, _)) in enumerate(whole.items())
    }
    assert _cached(whole).with_part(_cached(part), doubtful) == _cached(expected)
