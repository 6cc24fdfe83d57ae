"""What is done for thousands of small files at once: the same as one by one, and safe in the same way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stepwell.errors import UnsafePath
from stepwell.pipeline.building.made import Source, UnitMade, _read_many, many_settled
from stepwell.pipeline.patterns.paths import SafeRoot
from stepwell.pipeline.staleness.judge import Current
from stepwell.pipeline.states.files.logged import Logged, store_changes


@pytest.mark.parametrize("same", [False, True])
def test_what_is_left_to_the_patterns_is_read_as_what_is_written_out(same: bool) -> None:
    source = Source("s", Current("code", "config", "", 0), "2026-01-15T00:00:00Z", "p#s")
    units = [
        UnitMade(
            f"{a}/{b}",
            {f"x/{a}.txt": f"hash {a}", f"x/{b}.txt": f"hash {b}"},
            [(f"y/{a}-{b}.txt", f"y/.stepwell-1-{a}", f"made {a}", None), (f"z/{a}.txt", "z/.stepwell-2", "z", None)],
        )
        for a, b in (("1", "2"), ("3", "3" if same else "4"))
    ]
    plain = many_settled(source, units, {})
    short = many_settled(source, units, {}, ["x/{0}.txt", "x/{1}.txt"], ["y/{0}-{1}.txt", "z/{0}.txt"])
    assert ("reads" in short) is not same  # 3/3 reads one file where others read two
    assert _read_many(json.loads(json.dumps(short))) == _read_many(json.loads(json.dumps(plain)))


def test_many_paths_are_joined_as_safely_as_one(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "in").mkdir(parents=True)
    (root / "out").symlink_to(tmp_path)
    join = SafeRoot(str(root)).joiner()
    assert [join(f"in/{name}") for name in ("a", "b")] == [f"{root.resolve()}/in/{name}" for name in ("a", "b")]
    assert join("new/a") == join("new/a") == f"{root.resolve()}/new/a"
    for path in ("in/../a", "in/.a", "in/a\n", "out/a", "../a", "/a", "in//a"):
        with pytest.raises(UnsafePath):
            join(path)


def test_a_log_is_folded_as_it_would_be_read(tmp_path: Path) -> None:
    logged = Logged(str(tmp_path / "x"), "things")
    values = {
        f'key "{number}", \\"value": é': {"n": number, "in": {"value": ["}}", '","value":']}} for number in range(700)
    }
    store_changes([(logged, values)])  # as one file
    more = {key: {"again": key} for key in list(values)[::2]}
    gone = dict.fromkeys(list(values)[1:400:4])
    for changes in (more, gone, {"last": 7}):
        store_changes([(logged, changes)])
    with open(logged.log_path, "ab") as file:
        file.write(b'{"key":"torn","value":{"a":{}}\n{ "value": {"b": 1}, "key": "by hand" }\n')
    expected = logged.read()
    assert expected == {key: value for key, value in (values | more | gone).items() if value} | {
        "last": 7,
        "by hand": {"b": 1},
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("stepwell.pipeline.states.files.logged.FOLD_BYTES", 0)
        logged.fold()
    assert not Path(logged.log_path).exists()
    assert logged.read() == expected
    assert logged.find(["last", "by hand"]) == {"last": 7, "by hand": {"b": 1}}
