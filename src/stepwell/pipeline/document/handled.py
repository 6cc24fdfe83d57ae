"""Stages that are a handler with a config, in documents and in Python."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ...errors import DefinitionError
from ...handlers import Handlers
from ...templates import TemplateError
from ...words import shown
from ..building.arguments import Signature, Taken
from ..stage import Stage, make_stage
from .bodies import SOLE_PARAMETER, HandlerBody


def handled_stage(
    name: str | None, handler: str, handlers: Handlers | None, given: Mapping[str, Any]
) -> tuple[Stage, Signature]:
    """A stage as Python writes it: its one input is called `input` in the templates of its config, several by their names."""
    where = str(given["place"])
    if name is None or not isinstance(handler, str):
        told = "it needs a name" if name is None else f"handler={shown(handler)}: the name of a handler is needed"
        raise DefinitionError(f"a stage without a function: {told}, as in stage('title', handler='llm')", where=where)
    inputs = {SOLE_PARAMETER: given["input"]} if isinstance(given["input"], str) else given["input"]
    stage = make_stage(name, handler=handler, **{**given, "input": inputs})
    try:
        body = HandlerBody(handler, stage.config, {}, stage.inputs, found_handlers(handlers))
    except TemplateError as error:
        raise DefinitionError(f"stage {name!r}: config: {error}", where=where) from None
    return stage._replace(function=body), handler_signature(stage)


def handler_signature(stage: Stage) -> Signature:
    """What the body of a handler is given: its inputs as texts, but for directories and what only has to be there."""
    taken = {}
    for name, pattern in stage.inputs.items():
        if not pattern.is_directory and name not in stage.gates:
            collected = any(variable in stage.collect for variable in pattern.variables)
            taken[name] = Taken(name, pattern.has_glob or collected, str)
    return Signature(taken, frozenset({"entity", "ctx"}), False)


def found_handlers(given: Handlers | None) -> Callable[[], Handlers]:
    """The handlers that were given, or those of the settings where the process runs, looked for when they are needed."""
    kept: list[Handlers] = [] if given is None else [given]

    def find() -> Handlers:
        if not kept:
            from ...settings import read_settings

            kept.append(Handlers.of_settings(read_settings({}, os.environ, Path.cwd())))
        return kept[0]

    return find
