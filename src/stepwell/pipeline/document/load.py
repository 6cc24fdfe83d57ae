"""Reading a pipeline from JSON or YAML. Reports all problems at once, each with its path, line and column."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, TypeVar

from ...base.forms.problems import Problems
from ...base.forms.reading import read_form
from ...define.document.text import ParsedText, read_document
from ...errors import DefinitionError, DocumentError, StoreError
from ...handlers import Handlers
from ..definition import PipelineDefinition
from .bodies import found_handlers
from .forms import PipelineForm
from .nodes import Nodes

if TYPE_CHECKING:
    from ..definition import TypesOfPipelines

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
    beside: Iterable[PipelineDefinition] = (),
    types: TypesOfPipelines | None = None,
) -> Made:
    """Make a pipeline of the content of a document. It is called `stem` unless it has a name; errors name the `source`.

    States that it names by type are looked for among the `types` of other pipelines: by default those of the pipelines `beside`
    it, and of all that were built in its root.
    """
    problems = Problems(read.repeated)
    form = read_form(PipelineForm, read.data, problems)
    pipeline: Made | None = None
    if form is not None:
        where = form.state_root if root is None else root
        if form.state_store == "database" and "://" not in where:
            where = f"sqlite:///{where.rstrip('/')}/states.db"
        options: dict[str, Any] = {"scan_interval": form.scan_interval, "limit": form.max_concurrent_entities}
        if form.retry_policy is not None:
            options["back_off"] = form.retry_policy.back_off
        nodes = Nodes(form, problems, found_handlers(handlers), tuple(jobs), strict=strict)
        if not problems:
            try:
                pipeline = make(home=home, name=form.name or stem, root=where, **options)
                pipeline.give_beside(beside)
            except DefinitionError as error:
                problems.add(("nodes",), str(error))
        if types is None and pipeline is not None and nodes.names_types:
            types = _types_of_others(pipeline, strict=strict)
        nodes.read(types or {})
        if pipeline is not None and not problems:
            try:
                nodes.add_to(pipeline)
            except Exception as error:
                problems.add(("nodes",), str(error))
    if pipeline is None or problems:
        raise DocumentError(source, problems.placed(read.marks()))
    if types is not None:
        pipeline.other_types = types
        again = partial(make_pipeline, make, read, source, stem, home, root=root, handlers=handlers, jobs=tuple(jobs))
        pipeline.read_again = lambda types: again(types=types)
    return pipeline


def _types_of_others(pipeline: PipelineDefinition, *, strict: bool) -> TypesOfPipelines:
    """A document is checked also where the database of its states cannot be reached."""
    try:
        return pipeline.types_of_others()
    except StoreError:
        if strict:
            return {}
        raise
