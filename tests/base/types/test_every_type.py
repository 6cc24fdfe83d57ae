"""Every type goes through input, parameter, output and state, in threads, on the loop and in processes, and comes back the same
from a replay, a fork and another process; with annotations and without."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stepwell import Engine
from stepwell.base.types.codecs import Codec
from tests.base.types.kinds_of_types import ROWS, TYPED, UNTYPED, expect


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """One for all rows: starting processes takes longer than the rest."""
    with Engine(f"sqlite:///{tmp_path_factory.mktemp('types')}/stepwell.db") as opened:
        yield opened


@pytest.mark.parametrize("name", ROWS)
def test_a_value_is_handed_on_through_everything_as_its_type(engine: Engine, name: str) -> None:
    cls: Any = TYPED[name]
    run = engine.run(cls(value=ROWS[name].value))
    expect(name, run.result)
    expect(name, run.output(cls.give))
    expect(name, run.output("take"))
    expect(name, run.outputs["look"])
    expect(name, run.state["kept"])
    assert run.replay().executed == ("give", "take", "look")
    fork = run.fork("take").wait(60)
    expect(name, fork.result)
    assert [attempt.ancestry for node in fork.nodes() for attempt in node.attempts]


@pytest.mark.parametrize("name", ROWS)
def test_without_annotations_it_is_json_until_somebody_asks_for_a_type(engine: Engine, name: str) -> None:
    row = ROWS[name]
    run = engine.run(UNTYPED[name](value=row.value), check=False)
    if row.keys:
        assert run.node("give").error is not None
        assert "say in the annotation what its keys are" in str(run.node("give").error)
        return
    stored = Codec(row.annotation).encode(row.value)
    assert run.output("give") == run.output("take") == json.loads(json.dumps(stored))
    expect(name, run.result)
    assert run.replay().executed == ("give", "take", "look")


def test_servers_keep_every_type_too(server_url: str) -> None:
    """All rows at once, then read in another process, with another hash seed, so that sets are in another order there."""
    with Engine(server_url, max_processes=1) as engine:
        runs = [engine.start(TYPED[name](value=row.value), run_id=name) for name, row in ROWS.items()]
        for name, run in zip(ROWS, runs, strict=True):
            expect(name, run.wait(60).result)
            expect(name, run.state["kept"])
        forks = {name: engine.get(name).fork("look") for name in list(ROWS)[::5]}
        for name, fork in forks.items():
            expect(name, fork.wait(60).result)
    read_elsewhere(server_url, list(ROWS))


def test_another_process_reads_the_same_values_and_writes_the_same_bytes(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/stepwell.db"
    names = [name for name in ROWS if "set" in name or name in ("dataclass", "pydantic", "registered", "union-inside")]
    with Engine(url) as engine:
        for name in names:
            engine.run(TYPED[name](value=ROWS[name].value), run_id=name)
    read_elsewhere(url, names)


def read_elsewhere(url: str, names: list[str]) -> None:
    program = f"""
from stepwell import Engine
from stepwell.base.codec import encode
from tests.base.types.kinds_of_types import ROWS, TYPED, expect
with Engine({url!r}, jobs=["tests.base.types"], runner=None) as engine:
    for name in {names!r}:
        run = engine.get(name)
        expect(name, run.result)
        assert run.replay().executed == ("give", "take", "look")
        assert encode(TYPED[name](value=ROWS[name].value).workflow_input()) == run.row.input
"""
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr


def test_what_is_stored_is_json_that_any_language_reads() -> None:
    order = Codec(ROWS["dataclass"].annotation).encode(ROWS["dataclass"].value)
    assert order == {
        "id": "8f3a2b11-0000-4000-8000-000000000001",
        "placed": "2026-01-31T12:00:00.000250+00:00",
        "lines": [{"sku": "book", "price": "12.50", "count": 1}],
        "tags": ["big", "gift", "new"],
        "by_day": {"2026-01-31": 3},
        "note": None,
        "colour": 2,
    }
