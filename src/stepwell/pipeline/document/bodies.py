"""The bodies of stages without a function of their own: a handler or function with a config, or a text to write."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ...base.secret_refs import SecretRef
from ...base.settings import read_settings
from ...base.templates import TemplateError, compile_config
from ...base.words import shown
from ...errors import DefinitionError
from ...handlers import Handler, Handlers
from ..building.arguments import BodyParameters, InputParameter
from ..entity import Entity
from ..patterns.pattern import Pattern
from ..stage import Stage, make_stage
from .names import without_dollars

SOLE_PARAMETER = "input"


class StageConfig:
    """The config of a stage: templates over the entity and the nodes above."""

    def __init__(self, config: Mapping[str, Any], names: Mapping[str, str], patterns: Mapping[str, Pattern]) -> None:
        self.is_empty = not config
        self._templates = compile_config(without_dollars(dict(config)))
        self._names = names
        """The node that each input comes from."""
        self._patterns = patterns
        """What each node above finds or writes, by name; for `entity`, the pattern that found it."""

    def render(self, entity: Entity, inputs: Mapping[str, Any], make_secret: Callable[[str], Any] = str) -> Any:
        own: dict[str, Any] = {**entity.values, "id": entity.id}
        scope: dict[str, Any] = {
            name: {**own, "path": pattern.partly_filled(entity.values).removesuffix("/")}
            for name, pattern in self._patterns.items()
        }
        scope.setdefault("entity", {**own, "path": entity.path})
        for parameter, content in inputs.items():
            name = self._names.get(parameter) or parameter
            scope[name] = {**own, **scope.get(name, {}), "content": content}
        scope.setdefault(SOLE_PARAMETER, {**own, "content": next(iter(inputs.values()), None)})
        return self._templates.render(scope, make_secret)


class HandlerBody:
    """Runs a handler with a config. Without a config the handler gets the entity and the input."""

    def __init__(self, name: str, handlers: Callable[[], Handlers], config: StageConfig) -> None:
        self.name = name
        self._handlers = handlers
        self._config = config

    @property
    def code(self) -> tuple[Callable[..., Any] | None, str | None]:
        """What its hash is made of: the function of a user, or the version of a built-in handler."""
        handler = self.handler
        if handler.where == "built in":
            return None, f"{handler.name} {handler.version}"
        return handler.function, None

    @property
    def handler(self) -> Handler:
        found = self._handlers()
        if self.name not in found:
            raise DefinitionError(
                f"there is no handler {self.name!r} here; give it by the setting `handlers`, or to load_pipeline(handlers=...)"
            )
        return found[self.name]

    def __call__(self, *, entity: Entity, ctx: Any, **inputs: Any) -> Any:
        handlers, handler = self._handlers(), self.handler
        if self._config.is_empty:
            config = {"entity": {**entity.values, "id": entity.id}, "input": _one_or_all(inputs)}
        else:
            config = self._config.render(entity, inputs, SecretRef)
        result = handlers.call(handler, ctx, config)
        if handler.is_async:
            import asyncio

            result = asyncio.run(result)
        return result["result"] if isinstance(result, dict) and "result" in result else result


class FunctionBody:
    """Calls a function of an allowed module with those of the inputs, config, entity and ctx that it takes."""

    def __init__(self, function: Callable[..., Any], config: StageConfig) -> None:
        self.function = function
        self.code = (function, None)
        self._config = config

    def __call__(self, *, entity: Entity, ctx: Any, **inputs: Any) -> Any:
        import inspect

        config = self._config.render(entity, inputs)
        given = {"entity": entity, "ctx": ctx, "config": config, "input": _one_or_all(inputs)}
        asked = inspect.signature(self.function).parameters
        free = [name for name in asked if name not in given]
        if len(free) == 1:
            given[free[0]] = given["input"]
        return self.function(**{name: value for name, value in given.items() if name in asked})


class TextBody:
    """Writes the text `content` of a config: `state_write`."""

    code = (None, "state_write 1")

    def __init__(self, config: StageConfig) -> None:
        self._config = config

    def __call__(self, *, entity: Entity, ctx: Any, **inputs: Any) -> Any:
        rendered = self._config.render(entity, inputs)["content"]
        return "\n".join(map(str, rendered)) if isinstance(rendered, list) else rendered


def _one_or_all(inputs: Mapping[str, Any]) -> Any:
    """The only input by itself, several by their names."""
    return inputs[SOLE_PARAMETER] if set(inputs) == {SOLE_PARAMETER} else dict(inputs)


def handled_stage(
    name: str | None, handler: str, handlers: Handlers | None, given: Mapping[str, Any]
) -> tuple[Stage, BodyParameters]:
    """Make a stage as written in Python. Templates in its config call a single input `input`, several by their names."""
    where = str(given["place"])
    if name is None or not isinstance(handler, str):
        message = "it needs a name" if name is None else f"handler={shown(handler)}: expected the name of a handler"
        raise DefinitionError(
            f"a stage without a function: {message}, as in stage('title', handler='llm')", where=where
        )
    inputs = {SOLE_PARAMETER: given["input"]} if isinstance(given["input"], str) else given["input"]
    stage = make_stage(name, handler=handler, **{**given, "input": inputs})
    try:
        body = HandlerBody(handler, found_handlers(handlers), StageConfig(stage.config, {}, stage.inputs))
    except TemplateError as error:
        raise DefinitionError(f"stage {name!r}: config: {error}", where=where) from None
    return stage._replace(function=body), handler_signature(stage)


def handler_signature(stage: Stage) -> BodyParameters:
    """A handler gets its inputs as texts, except directories and gates."""
    taken = {
        name: InputParameter(name, pattern.has_glob or not set(stage.collect).isdisjoint(pattern.variables), str)
        for name, pattern in stage.inputs.items()
        if not pattern.is_directory and name not in stage.gates
    }
    return BodyParameters(taken, frozenset({"entity", "ctx"}), False)


def found_handlers(given: Handlers | None) -> Callable[[], Handlers]:
    """Return a function for the given handlers, or for those of the settings of the process that first calls it."""
    if given is not None:
        return lambda: given
    return functools.cache(lambda: Handlers.of_settings(read_settings({}, os.environ, Path.cwd())))
