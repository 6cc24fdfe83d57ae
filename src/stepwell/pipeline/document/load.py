"""Reading a pipeline from JSON or YAML. Reports all problems at once, each with its path, line and column."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path as FilePath
from typing import Any, TypeVar

from ...base.clock import is_seconds
from ...base.forms.problems import Problems
from ...define.document import DocumentError
from ...define.document.text import ParsedText, read_document
from ...handlers import Handlers
from ..definition import PipelineDefinition, checked_root, open_states
from ..trigger import types_of_root
from .bodies import found_handlers
from .nodes import Nodes
from .schema import FIELDS, STORES

Made = TypeVar("Made", bound=PipelineDefinition)


def read_pipeline(make: type[Made], path: str | os.PathLike[str], **options: Any) -> Made:
    """Read the pipeline in a file, as an object of the class `make`. For the options see `load_pipeline`."""
    file = FilePath(path)
    return make_pipeline(make, read_document(file), str(file), file.stem, os.path.abspath(file), **options)


def is_pipeline(path: str | os.PathLike[str]) -> bool:
    """Whether the mode of a document is that of a pipeline."""
    try:
        data = read_document(FilePath(path)).data
    except DocumentError:
        return False
    return isinstance(data, dict) and data.get("mode") == "pipeline"


def make_pipeline(
    make: type[Made],
    read: ParsedText,
    source: str,
    stem: str,
    home: str,
    *,
    root: str | None = None,
    handlers: Handlers | None = None,
    jobs: Iterable[str] = (),
    strict: bool = False,
) -> Made:
    """Make a pipeline of the content of a document. It is called `stem` unless it has a name; errors name the `source`."""
    problems = Problems(read.repeated)
    if not isinstance(read.data, dict):
        problems.expected((), "an object with mode and nodes", read.data)
    else:
        options = _options(read.data, stem, root, problems)
        where = options["root"]

        def types() -> list[Mapping[str, str]]:
            if problems or (strict and "://" in where):  # checking a document needs no database
                return []
            with closing(open_states(checked_root(where), options["name"])) as store:
                return types_of_root(store)

        nodes = Nodes(read.data, problems, found_handlers(handlers), tuple(jobs), types=types, strict=strict)
        if not problems:
            try:
                pipeline = make(home=home, **options)
                nodes.add_to(pipeline)
            except Exception as error:
                problems.add(("nodes",), str(error))
            else:
                return pipeline
    raise DocumentError(source, problems.placed(read.marks()))


def _options(data: Mapping[str, Any], stem: str, root: str | None, problems: Problems) -> dict[str, Any]:
    """The options of the pipeline."""
    for key in data:
        if key not in FIELDS:
            problems.unknown((key,), f"a pipeline has no field {key!r}", str(key), FIELDS)
    if data.get("mode") != "pipeline":
        problems.expected(("mode",), '"pipeline"', data.get("mode"))
    store = data.get("stateStore", "filesystem")
    if store not in STORES:
        problems.unknown(("stateStore",), f"there is no store of states {store!r}", str(store), STORES)
    where = root if root is not None else data.get("stateRoot", "output")
    if not isinstance(where, str) or not where:
        problems.expected(("stateRoot",), "a folder", where)
    elif store == "database" and "://" not in where:
        where = f"sqlite:///{where.rstrip('/')}/states.db"
    interval = data.get("scanInterval", 60)
    if not is_seconds(interval, positive=True):
        problems.expected(("scanInterval",), "a number of seconds", interval)
    limit = data.get("maxConcurrentEntities")
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        problems.expected(("maxConcurrentEntities",), "a whole number from 1", limit)
    name = data.get("name", stem)
    if not isinstance(name, str):
        problems.expected(("name",), "some text", name)
    return {"name": name, "root": where, "scan_interval": interval, "limit": limit, **_back_off(data, problems)}


def _back_off(data: Mapping[str, Any], problems: Problems) -> dict[str, Any]:
    policy = data.get("retryPolicy")
    if policy is None:
        return {}
    seconds = policy.get("backoffSeconds") if isinstance(policy, dict) else None
    if not isinstance(seconds, list) or not all(is_seconds(each) for each in seconds):
        problems.expected(("retryPolicy", "backoffSeconds"), "a list of seconds", seconds)
        return {}
    most = policy.get("maxAttempts")
    return {"back_off": seconds if most is None else seconds[: max(0, int(most) - 1)]}
