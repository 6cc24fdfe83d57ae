"""Reading a pipeline from JSON or YAML: everything that is wrong with it at once, with its path, line and column."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path as FilePath
from typing import Any, TypeVar

from ...clock import is_seconds
from ...define.document import DocumentError
from ...define.document.problems import Collected, Unreadable
from ...define.document.text import Read, form_of, read_file, read_text
from ...handlers import Handlers
from ..definition import PipelineDefinition
from .handled import found_handlers
from .nodes import Nodes

FIELDS = (
    "mode", "name", "description", "stateStore", "stateRoot", "scanInterval", "maxConcurrentEntities", "retryPolicy", "nodes",
    "connections",
)  # fmt: skip
STORES = ("filesystem", "files", "database")


Made = TypeVar("Made", bound=PipelineDefinition)


def read_pipeline(
    make: type[Made],
    path: str | os.PathLike[str],
    *,
    root: str | None = None,
    handlers: Handlers | None = None,
    jobs: Iterable[str] = (),
    check_handlers: bool = False,
) -> Made:
    """The pipeline in a file, as an object of the class `make`.

    `root` stands for its `stateRoot`; functions it names must be in modules of `jobs`.
    Handlers are looked for when they are needed; with `check_handlers`, one that is not here is a problem of the document.
    """
    file = FilePath(path)
    return _load(
        make, _read_file(file), str(file), file.stem, os.path.abspath(file), root, handlers, tuple(jobs), check_handlers
    )


def read_pipeline_text(
    make: type[Made],
    content: bytes,
    *,
    source: str,
    home: str,
    handlers: Handlers | None = None,
    jobs: Iterable[str] = (),
) -> Made:
    """The same of a text that was saved: it names its pipeline."""
    return _load(make, read_text(content, "json"), source, source, home, None, handlers, tuple(jobs), False)


def content_of_file(path: str | os.PathLike[str]) -> tuple[str, dict[str, Any]]:
    """What is saved of a file: the name of its pipeline, which may be that of the file, and what it says."""
    file = FilePath(path)
    data = _read_file(file).data
    return data.get("name", file.stem), {"name": file.stem, **data}


def _read_file(file: FilePath) -> Read:
    try:
        return read_text(read_file(file), form_of(file))
    except Unreadable as error:
        raise error.as_error(str(file)) from None


def _load(
    make: type[Made],
    read: Read,
    source: str,
    stem: str,
    home: str,
    root: str | None,
    handlers: Handlers | None,
    jobs: tuple[str, ...],
    check_handlers: bool,
) -> Made:
    problems = Collected()
    for repeated in read.repeated:
        problems.add(repeated, "this key is there more than once", found=repeated[-1])
    made = _read(make, read.data, problems, stem, home, root, found_handlers(handlers), jobs, check_handlers)
    if problems or made is None:
        raise DocumentError(source, problems.placed(read.marks()))
    return made


def is_pipeline(path: str | os.PathLike[str]) -> bool:
    """Whether a document is a pipeline, told by its mode."""
    file = FilePath(path)
    try:
        data = read_text(read_file(file), form_of(file)).data
    except Unreadable:
        return False
    return isinstance(data, dict) and data.get("mode") == "pipeline"


def _read(
    make: type[Made],
    data: Any,
    problems: Collected,
    stem: str,
    home: str,
    root: str | None,
    handlers: Callable[[], Handlers],
    jobs: tuple[str, ...],
    check_handlers: bool,
) -> Made | None:
    if not isinstance(data, dict):
        problems.needed((), "an object with mode and nodes", data)
        return None
    for key in data:
        if key not in FIELDS:
            problems.unknown((key,), f"a pipeline has no field {key!r}", str(key), FIELDS)
    if data.get("mode") != "pipeline":
        problems.needed(("mode",), '"pipeline"', data.get("mode"))
    store = data.get("stateStore", "filesystem")
    if store not in STORES:
        problems.unknown(("stateStore",), f"there is no store of states {store!r}", str(store), STORES)
    where = root if root is not None else data.get("stateRoot", "output")
    if not isinstance(where, str) or not where:
        problems.needed(("stateRoot",), "a folder", where)
        where = "output"
    if store == "database" and "://" not in where:
        where = f"sqlite:///{where.rstrip('/')}/states.db"
    interval = data.get("scanInterval", 60)
    if not is_seconds(interval, positive=True):
        problems.needed(("scanInterval",), "a number of seconds", interval)
        interval = 60
    limit = data.get("maxConcurrentEntities")
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        problems.needed(("maxConcurrentEntities",), "a whole number from 1", limit)
        limit = None
    name = data.get("name", stem)
    if not isinstance(name, str):
        problems.needed(("name",), "some text", name)
        name = stem
    nodes = Nodes(data, problems, handlers, jobs, check_handlers=check_handlers)
    if problems:
        return None
    try:
        pipeline = make(name, root=where, scan_interval=interval, limit=limit, home=home, **_back_off(data, problems))
        nodes.add_to(pipeline)
    except Exception as error:
        problems.add(("nodes",), str(error))
        return None
    return pipeline


def _back_off(data: Mapping[str, Any], problems: Collected) -> dict[str, Any]:
    policy = data.get("retryPolicy")
    if policy is None:
        return {}
    seconds = policy.get("backoffSeconds") if isinstance(policy, dict) else None
    if not isinstance(seconds, list) or not all(is_seconds(each) for each in seconds):
        problems.needed(("retryPolicy", "backoffSeconds"), "a list of seconds", seconds)
        return {}
    most = policy.get("maxAttempts")
    return {"back_off": seconds if most is None else seconds[: max(0, int(most) - 1)]}
