"""The same builder code gives the same graph, ids included."""

from __future__ import annotations

import os
import subprocess
import sys
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.define import Builder
from tests.define.shop import charge


def built(names: list[str]) -> tuple[Builder, list[str]]:
    w = Builder("w")
    return w, [w.node(name, job=charge) for name in names]


def test_an_id_is_made_of_the_name_and_how_many_had_it_before() -> None:
    _, ids = built(["a", "b", "a"])
    assert ids == [f"n_{sha256(text).hexdigest()[:8]}" for text in (b"a\x000", b"b\x000", b"a\x001")]


@given(
    st.lists(
        st.text(min_size=1, max_size=3).filter(lambda name: name.strip() and name.isprintable()),
        min_size=1,
        max_size=20,
    )
)
def test_the_same_calls_give_the_same_graph(names: list[str]) -> None:
    (first, ids), (second, again) = built(names), built(names)
    assert ids == again
    assert len(set(ids)) == len(names)
    assert first.graph().order == second.graph().order


def test_ids_that_would_collide_are_lengthened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepwell.define.builder._ID_DIGITS", 1)
    w, ids = built([f"node {i}" for i in range(200)])
    assert len(set(ids)) == 200
    assert len(ids[0]) == 3
    assert max(map(len, ids)) > 3
    assert list(w.graph().nodes) == ids


def test_a_hundred_thousand_ids_are_unique() -> None:
    w = Builder("w")
    ids = w.fan_out(range(100_000), job=charge)
    assert len(set(ids)) == 100_000
    assert min(map(len, ids)) == 10


def test_the_same_code_gives_the_same_graph_in_another_process() -> None:
    code = (
        "from stepwell.define import Builder;"
        "w = Builder('w');"
        "parts = w.fan_out(['x', 'y'], job='shop:process', args=lambda i: {'b': i, 'a': {'d': 1, 'c': 2}});"
        "w.node('join', job='shop:join', depends_on=parts, retry=2);"
        "w.node('join', job='shop:join', depends_on=parts);"
        "print(w.graph().digest)"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(seen) == 1


def test_another_node_before_it_does_not_change_an_id() -> None:
    """Names that are not repeated have the same id whatever stands around them, so an edited builder finds them again."""
    _, ids = built(["a", "b"])
    _, later = built(["first", "b", "a"])
    assert ids == [later[2], later[1]]
