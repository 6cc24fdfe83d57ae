"""Manifests and notes as merges, editors and crashes leave them: understood, or an error that names the file."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from stepwell import Engine, Pipeline
from stepwell.errors import StepwellError
from stepwell.pipeline.states.records import StageFailure, failure_from

KEYS = st.sampled_from(
    [
        "a.txt",
        "version",
        "states",
        "codeHash",
        "contentHash",
        "inputs",
        "members",
        "entity",
        "key",
        "value",
        "failures",
        "",
        "é",
    ]
)
ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats()
    | st.text(max_size=3)
    | st.just(10**400)
    | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=5,
)
FILES = [
    "out/.manifest.json", "out/.manifest.log", ".stepwell/failures.json", ".stepwell/failures.log", ".stepwell/code.json",
    ".stepwell/triggers.json", ".stepwell/root.json", ".stepwell/p.cache", ".stepwell/p.lease",
]  # fmt: skip


def pipeline_in(root: Path) -> Pipeline:
    pipeline = Pipeline("p", root=root)

    @pipeline.stage("copy", input="in/{x}.txt", output="out/{x}.txt", version="1")
    def copy(text: str) -> str:
        if text == "bad":
            raise ValueError("bad")
        return text.upper()

    return pipeline


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with Engine(f"sqlite:///{tmp_path_factory.mktemp('engine')}/engine.db") as engine:
        yield engine


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, engine: Engine) -> Path:
    """A root with a state that is fresh and one that failed."""
    root = tmp_path_factory.mktemp("built") / "root"
    (root / "in").mkdir(parents=True)
    (root / "in/a.txt").write_text("text")
    (root / "in/b.txt").write_text("bad")
    pipeline_in(root).build(engine=engine)
    return root


def replaced(value: Any, path: list[int], odd: Any) -> Any:
    """The same JSON with something else at one place."""
    if not path or not isinstance(value, dict) or not value:
        return odd
    key = sorted(value)[path[0] % len(value)]
    return {**value, key: replaced(value[key], path[1:], odd)}


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    file=st.sampled_from(FILES),
    path=st.lists(st.integers(0, 9), max_size=3),
    odd=ODD,
    cut=st.none() | st.integers(0, 400),
)
@example(file="out/.manifest.json", path=[1], odd="2", cut=None)  # the version
@example(file="out/.manifest.json", path=[0, 0, 4], odd={"in/a.txt": None}, cut=None)
@example(file="out/.manifest.json", path=[0, 0, 4], odd=7, cut=None)
@example(file=".stepwell/failures.json", path=[0, 0, 5], odd="soon", cut=None)
@example(file=".stepwell/failures.json", path=[0, 0], odd=[], cut=None)
@example(file=".stepwell/root.json", path=[], odd=[1], cut=None)
@example(file="out/.manifest.json", path=["deep"], odd=None, cut=None)
def test_whatever_a_file_of_ours_holds(
    built: Path, engine: Engine, tmp_path: Path, file: str, path: list[Any], odd: Any, cut: int | None
) -> None:
    root = tmp_path / "root"
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(built, root)
    there = (root / file).read_bytes() if (root / file).exists() else b'{"key": "a.txt", "value": {}}\n'
    if path == ["deep"]:
        content = b"[" * 100_000
    elif cut is not None:
        content = there[:cut]
    else:
        try:
            content = json.dumps(replaced(json.loads(there), path, odd)).encode()
        except ValueError:
            content = json.dumps(odd).encode()
    (root / file).write_bytes(content)
    for name in ("out/.manifest", ".stepwell/failures"):  # otherwise the cache says that nothing has changed
        if file.startswith(name):
            (root / ".stepwell/p.cache").unlink()
    pipeline = pipeline_in(root)
    for ask in (
        pipeline.status,
        lambda: pipeline.why("out/a.txt").standing,
        lambda: pipeline.invalidate("out/a.txt"),
        lambda: pipeline.retry("copy a"),
        lambda: pipeline.build(engine=engine),
    ):
        try:
            ask()
        except StepwellError as error:
            problem = str(error)
        else:
            continue
        assert Path(file).name in problem or "manifest" in problem or ".json" in problem


FAILURE = StageFailure("boom", "ValueError", 2, 1_700_000_000.0, 1_700_000_060.5, 1_700_000_120.0, "1a2b", "r-1")
NUMBERS = ("attempts", "firstFailedAt", "lastFailedAt", "nextRetryAt")
TEXTS = ("error", "errorType", "identity", "runId")


def test_a_failure_with_one_odd_field_is_none() -> None:
    """Its stage is tried again at once, rather than never or with an error."""
    whole = FAILURE.to_json()
    assert failure_from(whole) == FAILURE
    assert failure_from(whole | {"nextRetryAt": None}) == FAILURE._replace(next_retry_at=None)
    assert failure_from({key: value for key, value in whole.items() if key != "runId"}) == FAILURE._replace(run_id="")
    for key in (*NUMBERS, *TEXTS):
        odd: list[object] = [
            True,
            False,
            [],
            {},
            *(["", "soon", 1e12, -1e13, float("nan")] if key in NUMBERS else [3, None]),
        ]
        for value in odd:
            assert failure_from(whole | {key: value}) is None, (key, value)
        assert key == "runId" or failure_from({name: each for name, each in whole.items() if name != key}) is None
    assert failure_from(whole | {"attempts": 0}) is None
