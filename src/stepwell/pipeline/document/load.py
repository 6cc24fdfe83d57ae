"""Reading a pipeline from JSON or YAML. Reports all problems at once, each with its path, line and column."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path as FilePath
from typing import Any, TypeVar

from ...base.forms.problems import Problems
from ...base.forms.reading import read_form
from ...define.document.text import ParsedText, read_document
from ...errors import DocumentError
from ...handlers import Handlers
from ..definition import PipelineDefinition, checked_root, open_states
from ..trigger import types_of_root
from .bodies import found_handlers
from .forms import PipelineForm
from .nodes import Nodes

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
    form = read_form(PipelineForm, read.data, problems)
    if form is not None:
        where = form.state_root if root is None else root
        if form.state_store == "database" and "://" not in where:
            where = f"sqlite:///{where.rstrip('/')}/states.db"
        name = form.name or stem

        def types() -> list[Mapping[str, str]]:
            if problems or (strict and "://" in where):  # checking a document needs no database
                return []
            with closing(open_states(checked_root(where), name)) as store:
                return types_of_root(store)

        nodes = Nodes(form, problems, found_handlers(handlers), tuple(jobs), types=types, strict=strict)
        if not problems:
            options: dict[str, Any] = {"scan_interval": form.scan_interval, "limit": form.max_concurrent_entities}
            if form.retry_policy is not None:
                options["back_off"] = form.retry_policy.back_off
            try:
                pipeline = make(home=home, name=name, root=where, **options)
                nodes.add_to(pipeline)
            except Exception as error:
                problems.add(("nodes",), str(error))
            else:
                return pipeline
    raise DocumentError(source, problems.placed(read.marks()))
