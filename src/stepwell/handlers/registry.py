"""Handlers by name: what each is, and the mapping of all there are.

    from pydantic import BaseModel
    from stepwell import handler

    class Geocode(BaseModel):
        address: str

    @handler("geocode", example={"address": "{{ input.address }}"}, retry=3)
    def geocode(ctx, config: Geocode):
        '''Find the coordinates of an address.'''
        return {"result": find(config.address)}

    engine = Engine(handlers=[geocode])           # or the module that it is in: handlers=["shop.handlers"]
    engine = Engine(handlers=Handlers([geocode], services={"crm": {"base_url": "https://crm.example.com"}}, secrets=vault))

A package brings handlers by entry points of the group `stepwell.handlers`, each the name of a handler and where it is. Nothing
registers itself by being imported. Pydantic is loaded when a handler is looked up, and a built-in one only then too.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import Any, TypeVar, get_type_hints

from ..errors import DefinitionError, PermanentError
from ..graph import Retry, SideEffects
from ..networks import allowed_networks
from ..place import caller
from ..secrets import NO_SECRETS, Provider, Secrets, has_references, references, references_of, resolved
from ..services import checked_services, owners_of
from ..settings import Settings
from ..words import shown
from .access import Access
from .configs import Later, Problem, fields_of, places_of_references, problems_of, schema_of, validated

ENTRY_POINTS = "stepwell.handlers"
DEFAULT_TIMEOUT = 30.0
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,99}")
_NOTHING: Mapping[str, Any] = MappingProxyType({})
Function = TypeVar("Function", bound=Callable[..., Any])

__all__ = ["Handler", "Handlers", "Problem", "handler"]


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
    """Fields of the config whose text is an expression as it stands: `a + 1` is rendered as `{{ a + 1 }}` would be."""
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
        return schema_of(self.config)

    def output_schema(self) -> dict[str, Any] | None:
        return None if self.output is None else schema_of(self.output)

    def output_fields(self) -> frozenset[str] | None:
        """The fields of what it returns; None when they are not known, or more may come."""
        return fields_of(self.output)

    def check_config(self, config: object, later: Later | None = None) -> list[Problem]:
        """What is wrong with a config as somebody wrote it. What is `later` known, a text that holds a template, is not judged,
        nor is a secret that the handler gets the value of."""
        written = references_of(config)
        problems = problems_of(self.config, written if self.keeps_secrets else config, later)
        if not self.takes_secrets:
            told = f"{self.name} takes no secrets: what it is given it returns"
            problems += [Problem(path, told) for path in places_of_references(written)]
        return problems

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
    timeout: float = DEFAULT_TIMEOUT,
    side_effects: SideEffects = "opaque",
) -> Callable[[Callable[..., Any]], Handler]:
    """Make a handler of a function `(ctx, config)`, `def` or `async def`.

    The models of config and output are those that its parameter `config` and its return value are annotated with, the
    description is its docstring, if they are not given.
    """
    where = str(caller())
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise DefinitionError(f"@handler({shown(name)}): a name of letters, digits, _ . and - is needed", where=where)

    def make(function: Callable[..., Any]) -> Handler:
        takes = list(inspect.signature(function).parameters)
        if len(takes) != 2:
            raise DefinitionError(
                f"handler {name!r}: a function (ctx, config) is needed; this takes ({', '.join(takes)})", where=where
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
            timeout,
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


_BUILT_IN = {
    "aggregate": "data:aggregate",
    "call_external_service": "http.service:call_external_service",
    "compute": "data:compute",
    "http_request": "http.request:http_request",
    "llm_service": "llm:llm_service",
    "shell": "shell:shell",
    "transform": "data:transform",
}
"""Each a function that makes the handler for what it may reach."""


class Handlers(Mapping[str, Handler]):
    """All handlers there are, by name. What is found is loaded when it is looked up; listing names loads nothing.

    `given` are handlers, or names of modules that hold some. The others say what they may reach: `services` that documents call
    by name, where `secrets` are (an object with `get(name)`, or `Secrets`), `private_networks` that HTTP may reach, and which
    programs `shell` may start (True: any).
    """

    def __init__(
        self,
        given: Iterable[Handler | str] = (),
        *,
        services: Mapping[str, Any] = _NOTHING,
        secrets: Secrets | Provider | None = None,
        private_networks: Iterable[str] = (),
        shell: Iterable[str] | bool = False,
        access: Access | None = None,
    ) -> None:
        if access is None:
            known = checked_services(services)
            kept = secrets if isinstance(secrets, Secrets) else Secrets(provider=secrets)
            programs = shell if isinstance(shell, bool) else frozenset(shell)
            access = Access(known, kept.owned_by(owners_of(known)), allowed_networks(private_networks), programs)
        self.access = access
        self._given: dict[str, Handler] = {}
        self._modules: list[str] = []
        self._loaded: dict[str, Handler] = {}
        self._points: dict[str, Any] | None = None
        for each in given:
            if isinstance(each, str):
                self._modules.append(each)
            elif isinstance(each, Handler):
                self._add(each)
            else:
                raise DefinitionError(
                    f"handlers=[{shown(each)}]: a function with @handler(...) is needed, or the name of a module"
                )

    @classmethod
    def of_settings(cls, settings: Settings) -> Handlers:
        """Those that the settings give, with what they may reach."""
        return cls(
            settings.handlers,
            services=settings.services,
            secrets=Secrets(settings.secrets, folder=settings.secrets_folder),
            private_networks=settings.private_networks,
            shell=settings.shell,
        )

    def __getitem__(self, name: str) -> Handler:
        found = self._loaded.get(name)
        if found is None:
            found = self._loaded[name] = self._find(name)
        return found

    def __iter__(self) -> Iterator[str]:
        self._import_given()
        return iter(sorted({*_BUILT_IN, *self._given, *self._entry_points()}))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        if name in _BUILT_IN or name in self._given:
            return True
        self._import_given()
        return name in self._given or name in self._entry_points()

    def call(self, handler: Handler, ctx: Any, config: Mapping[str, Any]) -> Any:
        """What a node of this handler returns, a coroutine for `async def`; `config` is rendered, its secrets references."""
        used = handler.takes_secrets and not handler.keeps_secrets and has_references(config)
        if used:
            service = config.get("service")
            known = service if isinstance(service, str) else None
            # What a replay is answered was recorded without secrets, and where it runs there may be none.
            secrets = NO_SECRETS if getattr(ctx, "replaying", False) else self.access.secrets
            config = resolved(config, secrets, known)
        result = handler.function(ctx, handler.validated(config))
        # A handler that gets the secrets themselves might return them, and an output is kept.
        finish = _masked if used else plain
        if handler.is_async:
            return result if handler.keeps_secrets else _later(result, finish)
        return finish(result)

    def missing(self, name: str, config: Mapping[str, Any]) -> list[str]:
        """Why a node of this handler could not run here: the handler, a service or a secret is not here."""
        if ":" not in name and name not in self:
            return [f"there is no handler {name!r} here; give it to the engine: Engine(handlers=[...]), or in settings"]
        named = config.get("service")
        found: list[str] = []
        service = self.access.services.get(named) if isinstance(named, str) else None
        if isinstance(named, str) and "{" not in named and service is None and name in _WITH_SERVICE:
            known = ", ".join(self.access.services) or "none"
            found.append(
                f"there is no service {named!r} here; there are {known}: add [services.{named}] to the settings"
            )
        used = [*references(references_of(config)), *(service.references if service is not None else ())]
        for ref in dict.fromkeys(used):
            problem = self.access.secrets.problem(ref, named if isinstance(named, str) else None)
            if problem is not None:
                found.append(problem)
        return found

    def _find(self, name: str) -> Handler:
        if name in _BUILT_IN:
            module, _, function = _BUILT_IN[name].partition(":")
            made: Handler = getattr(import_module(f"{__package__}.{module}"), function)(self.access)
            return made
        if name not in self._given:
            self._import_given()
        if name in self._given:
            return self._given[name]
        point = self._entry_points().get(name)
        if point is None:
            raise KeyError(name)
        return _loaded_point(name, point)

    def _add(self, handler: Handler) -> None:
        if handler.name in _BUILT_IN:
            raise DefinitionError(f"handler {handler.name!r} is built in: call yours otherwise", where=handler.where)
        other = self._given.setdefault(handler.name, handler)
        if other is not handler:
            raise DefinitionError(
                f"there are two handlers {handler.name!r}, one of them from {other.where}", where=handler.where
            )

    def _import_given(self) -> None:
        while self._modules:
            for thing in list(vars(_imported(self._modules[0])).values()):
                if isinstance(thing, Handler):
                    self._add(thing)
            del self._modules[0]

    def _entry_points(self) -> dict[str, Any]:
        if self._points is None:
            from importlib.metadata import entry_points

            self._points = {each.name: each for each in entry_points(group=ENTRY_POINTS) if each.name not in _BUILT_IN}
        return self._points


_WITH_SERVICE = frozenset({"call_external_service", "llm_service"})


def _imported(module: str) -> ModuleType:
    try:
        return import_module(module)
    except Exception as error:
        raise DefinitionError(
            f"handlers of module {module!r} cannot be loaded: {type(error).__name__}: {error}"
        ) from error


def _loaded_point(name: str, point: Any) -> Handler:
    try:
        found = point.load()
    except Exception as error:
        raise DefinitionError(f"handler {name!r} cannot be loaded from {point.value}: {error}") from error
    if not isinstance(found, Handler) or found.name != name:
        raise DefinitionError(f'{point.value} is no handler {name!r}: a function with @handler("{name}") is needed')
    return found


def _masked(result: Any) -> Any:
    from ..replay.effects.record import masked_value

    return masked_value(plain(result))


async def _later(result: Awaitable[Any], finish: Callable[[Any], Any]) -> Any:
    return finish(await result)


def plain(result: Any) -> Any:
    """What a handler returned, a model as the data it stands for."""
    return result if type(result) is dict or not hasattr(result, "model_dump") else result.model_dump(mode="json")
