"""The bodies of stages in documents: a handler or function with a config, or a text to write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...errors import DefinitionError
from ...handlers import Handler, Handlers
from ...secrets import SecretRef
from ...templates import compile_config
from ..entity import Entity
from ..patterns.pattern import Pattern
from .names import config_without_dollars

SOLE_PARAMETER = "input"


class Body:
    """Runs for one entity. Gets its inputs as texts, by name."""

    def __init__(self, config: Mapping[str, Any], names: Mapping[str, str], patterns: Mapping[str, Pattern]) -> None:
        self._names = names
        """The node that each input comes from."""
        self._patterns = patterns
        """What each node above finds or writes, by name; for `entity`, the pattern that found it."""
        self._config = compile_config(config_without_dollars(dict(config)))

    def __call__(self, *, entity: Entity, ctx: Any, **inputs: Any) -> Any:
        raise NotImplementedError

    def scope(self, entity: Entity, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """What the templates of a config can refer to: the entity, and the nodes above."""
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
        return scope


class HandlerBody(Body):
    """A handler with a config. Without a config it gets the entity and the input."""

    def __init__(
        self, name: str, handlers: Callable[[], Handlers], config: Mapping[str, Any], names: Mapping[str, str],
        patterns: Mapping[str, Pattern],
    ) -> None:  # fmt: skip
        super().__init__(config, names, patterns)
        self.name = name
        self._has_config = bool(config)
        self._handlers = handlers

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
        if self._has_config:
            config = self._config.render(self.scope(entity, inputs), SecretRef)
        else:
            config = {"entity": {**entity.values, "id": entity.id}, "input": _one_or_all(inputs)}
        result = handlers.call(handler, ctx, config)
        if handler.is_async:
            import asyncio

            result = asyncio.run(result)
        return result["result"] if isinstance(result, dict) and "result" in result else result


class FunctionBody(Body):
    """A function of an allowed module, called with those of the inputs, config, entity and ctx that it takes."""

    def __init__(
        self, function: Callable[..., Any], config: Mapping[str, Any], names: Mapping[str, str], patterns: Mapping[str, Pattern]
    ) -> None:  # fmt: skip
        super().__init__(config, names, patterns)
        self.function = function

    @property
    def code(self) -> tuple[Callable[..., Any] | None, str | None]:
        return self.function, None

    def __call__(self, *, entity: Entity, ctx: Any, **inputs: Any) -> Any:
        import inspect

        config = self._config.render(self.scope(entity, inputs))
        given = {"entity": entity, "ctx": ctx, "config": config, "input": _one_or_all(inputs)}
        asked = inspect.signature(self.function).parameters
        free = [name for name in asked if name not in given]
        if len(free) == 1:
            given[free[0]] = given["input"]
        return self.function(**{name: value for name, value in given.items() if name in asked})


class TextBody(Body):
    """Writes a text: `state_write`."""

    code: tuple[Callable[..., Any] | None, str | None] = (None, "state_write 1")

    def __init__(self, content: Any, names: Mapping[str, str], patterns: Mapping[str, Pattern]) -> None:
        super().__init__({"content": content}, names, patterns)

    def __call__(self, *, entity: Entity, ctx: Any, **inputs: Any) -> Any:
        rendered = self._config.render(self.scope(entity, inputs))["content"]
        return "\n".join(map(str, rendered)) if isinstance(rendered, list) else rendered


def _one_or_all(inputs: Mapping[str, Any]) -> Any:
    """The only input by itself, several by their names."""
    return inputs[SOLE_PARAMETER] if set(inputs) == {SOLE_PARAMETER} else dict(inputs)
