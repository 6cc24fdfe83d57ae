"""What data may name: neither documents, nor edited graphs, nor triggers run a function that was not registered for them."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, get_args

from hypothesis import strategies as st

from stepwell import Document, Engine, Run, Trigger
from stepwell.errors import StepwellError

from .drawing import PLAIN, document
from .files import built_pipeline

Where = Literal["document", "graph", "trigger"]
PRODUCE = {"home": "never_named", "pipeline": "x", "stage": "upper", "units": []}
FAILING = document({"id": "a", "handler": "compute", "config": {"expression": "1 / 0"}})


@contextmanager
def _module_on_path() -> Iterator[None]:
    """A module that could be imported, and must not be."""
    before = set(sys.modules)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "never_named.py").write_text("class X: ...\ndef x(**_): ...\n", "utf-8")
        sys.path.insert(0, folder)
        try:
            yield
        finally:
            sys.path.remove(folder)
    assert "never_named" not in set(sys.modules) - before


def _run_of(engine: Engine, where: Where, name: str, config: dict[str, Any]) -> Run:
    """A run whose node has this name for its function, if data may say so."""
    if where == "document":
        return engine.run(Document(document({"id": "a", "handler": name, "config": config})), check=False)
    if where == "trigger":
        engine.triggers.add(Trigger("asked", name, every="1h", input=config))
        return engine.get(engine.triggers.fire("asked")).wait(30)
    run = engine.run(Document(FAILING), check=False)
    form = run.export_graph()
    form["nodes"]["a"] |= {"job": name, "args": config}
    return run.import_graph(form).retry().wait(30)


def start_named(given: list[Any]) -> None:
    where, name, config = given
    with _module_on_path(), built_pipeline() as (_, pipeline):
        pipeline.build()
        with Engine("memory://") as engine, suppress(StepwellError):
            run = _run_of(engine, where, name, config)
            assert run.status != "COMPLETED", f"{name} was run for a {where}"


NAMES = ["stepwell.pipeline.building.jobs:produce", "stepwell:Engine", "builtins:eval", "os:getcwd", "never_named:x"]
SEEDS = [
    [where, name, config]
    for where in get_args(Where)
    for name, config in ((NAMES[0], PRODUCE), ("os:getcwd", {}), ("never_named:x", {}), ("never_named:X", {}))
]
DRAWN = st.tuples(
    st.sampled_from(get_args(Where)),
    st.sampled_from(NAMES),
    st.dictionaries(st.sampled_from([*PRODUCE]), st.just("never_named") | PLAIN, max_size=4),
)
