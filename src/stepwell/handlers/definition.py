"""What a handler is, and `@handler`, which makes one of a function."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, get_type_hints

from ..base.clock import Duration, in_seconds
from ..base.forms.problems import Problem
from ..base.place import caller
from ..base.secret_refs import SecretRef, has_references, leaves, references_of
from ..base.words import shown
from ..core.graph import Retry, SideEffects
from ..errors import DefinitionError, PermanentError
from .configs import Later, fields_of, problems_of, validated

DEFAULT_TIMEOUT = 30.0
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,99}")
_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True, eq=False)
class Handler:
    """What the nodes that name it do. Calling it calls its function."""

    name: str
    function: Callable[[Any, Any], Any]
    """`(ctx, config) -> JSON`, `def` or `async def`."""
    config: Any = None
    """The pydantic model of its config; None: any mapping."""
    output: Any = None
    """The pydantic model of what it returns; None: not known."""
    description: str = ""
    example: Mapping[str, Any] = field(default_factory=dict)
    """A config."""
    version: str = "1"
    retry: Retry | None = None
    """How its nodes are retried if they do not say."""
    timeout: float = DEFAULT_TIMEOUT
    """Seconds its nodes have if they do not say."""
    side_effects: SideEffects = "opaque"
    expressions: frozenset[str] = frozenset()
    """Fields of the config that are expressions without braces: `a + 1` is rendered like `{{ a + 1 }}`."""
    keeps_secrets: bool = False
    """It takes references to secrets and resolves them itself; other handlers find the values in their config."""
    takes_secrets: bool = True
    where: str = field(default="built in", repr=False)
    is_async: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_async", inspect.iscoroutinefunction(self.function))

    def __call__(self, ctx: Any, config: Any) -> Any:
        return self.function(ctx, config)

    def config_schema(self) -> dict[str, Any]:
        """The JSON Schema of its config."""
        schema: dict[str, Any] = {"type": "object"} if self.config is None else self.config.model_json_schema()
        return schema

    def output_schema(self) -> dict[str, Any] | None:
        schema: dict[str, Any] | None = None if self.output is None else self.output.model_json_schema()
        return schema

    def output_fields(self) -> frozenset[str] | None:
        """The fields of its output; None if they are unknown or open."""
        return fields_of(self.output)

    def check_config(self, config: object, later: Later | None = None) -> list[Problem]:
        """The problems of a config as written. Texts that are `later` rendered, and secrets, are not checked."""
        written = references_of(config)
        problems = problems_of(self.config, written if self.keeps_secrets else config, later)
        return problems + self._secrets_not_taken(written)

    def _secrets_not_taken(self, written: object) -> list[Problem]:
        message = f"{self.name} takes no secrets: what it is given it returns"
        places = () if self.takes_secrets else leaves(written)
        return [Problem(path, message) for path, leaf in places if isinstance(leaf, SecretRef)]

    def validated(self, config: Mapping[str, Any]) -> Any:
        """The config as the function takes it; PermanentError lists all that is wrong."""
        if not self.takes_secrets and has_references(config):
            raise PermanentError(f"{self.name} takes no secrets: what it is given it returns")
        return validated(self.name, self.config, config)


def handler(
    name: str,
    *,
    config: type | None = None,
    output: type | None = None,
    description: str | None = None,
    example: Mapping[str, Any] = _NOTHING,
    version: str = "1",
    retry: Retry | int | None = None,
    timeout: Duration = DEFAULT_TIMEOUT,
    side_effects: SideEffects = "opaque",
) -> Callable[[Callable[..., Any]], Handler]:
    """Make a handler of a function `(ctx, config)`, `def` or `async def`.

    The models of config and output are those that its parameter `config` and its return value are annotated with, the
    description is its docstring, if they are not given.
    """
    where = str(caller())
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise DefinitionError(f"@handler({shown(name)}): expected a name of letters, digits, _ . and -", where=where)

    def make(function: Callable[..., Any]) -> Handler:
        takes = list(inspect.signature(function).parameters)
        if len(takes) != 2:
            raise DefinitionError(
                f"handler {name!r}: expected a function (ctx, config); this takes ({', '.join(takes)})", where=where
            )
        hints = _hints(function, needed=config is None)
        return Handler(
            name,
            function,
            config or _model(hints.get(takes[1])),
            output or _model(hints.get("return")),
            inspect.cleandoc(function.__doc__ or "") if description is None else description,
            dict(example),
            version,
            Retry.of(retry),
            in_seconds(timeout),
            side_effects,
            where=where,
        )

    return make


def _hints(function: Callable[..., Any], *, needed: bool) -> dict[str, Any]:
    try:
        return get_type_hints(function)
    except NameError as error:
        if not needed:
            return {}
        raise DefinitionError(f"{error} where {function.__name__} is annotated: say config=... instead") from None


def _model(hint: Any) -> Any:
    """A pydantic model; anything else says nothing about the fields."""
    return hint if isinstance(hint, type) and hasattr(hint, "model_validate") else None
