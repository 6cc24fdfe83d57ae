"""Stages that run a handler with a config, written in documents or in Python."""

from __future__ import annotations

import functools
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
from .bodies import SOLE_PARAMETER, HandlerBody, StageConfig


def handled_stage(
    name: str | None, handler: str, handlers: Handlers | None, given: Mapping[str, Any]
) -> tuple[Stage, Signature]:
    """Make a stage as written in Python. Templates in its config call a single input `input`, several by their names."""
    where = str(given["place"])
    if name is None or not isinstance(handler, str):
        told = "it needs a name" if name is None else f"handler={shown(handler)}: the name of a handler is needed"
        raise DefinitionError(f"a stage without a function: {told}, as in stage('title', handler='llm')", where=where)
    inputs = {SOLE_PARAMETER: given["input"]} if isinstance(given["input"], str) else given["input"]
    stage = make_stage(name, handler=handler, **{**given, "input": inputs})
    try:
        body = HandlerBody(handler, found_handlers(handlers), StageConfig(stage.config, {}, stage.inputs))
    except TemplateError as error:
        raise DefinitionError(f"stage {name!r}: config: {error}", where=where) from None
    return stage._replace(function=body), handler_signature(stage)


def handler_signature(stage: Stage) -> Signature:
    """A handler gets its inputs as texts, except directories and gates."""
    taken = {}
    for name, pattern in stage.inputs.items():
        if not pattern.is_directory and name not in stage.gates:
            collected = any(variable in stage.collect for variable in pattern.variables)
            taken[name] = Taken(name, pattern.has_glob or collected, str)
    return Signature(taken, frozenset({"entity", "ctx"}), False)


def found_handlers(given: Handlers | None) -> Callable[[], Handlers]:
    """Return a function for the given handlers, or for those of the settings of the process that first calls it."""
    return functools.cache(_handlers_of_settings) if given is None else lambda: given


def _handlers_of_settings() -> Handlers:
    from ...settings import read_settings

    return Handlers.of_settings(read_settings({}, os.environ, Path.cwd()))
