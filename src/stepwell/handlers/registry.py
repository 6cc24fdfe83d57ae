"""Handlers by name: the mapping of all there are.

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

import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import Any

from ..base.networks import allowed_networks
from ..base.secret_refs import has_references, references, references_of
from ..base.secrets import ANY_SERVICE, NO_SECRETS, Provider, Secrets, resolved
from ..base.settings import Settings, checked_services
from ..base.words import shown
from ..errors import DefinitionError
from .access import Access, owners_of
from .definition import Handler

log = logging.getLogger("stepwell")

ENTRY_POINTS = "stepwell.handlers"
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_BUILT_IN = {
    "aggregate": "data:aggregate",
    "call_external_service": "http.service:call_external_service",
    "compute": "data:compute",
    "http_request": "http.request:http_request",
    "llm_service": "llm:llm_service",
    "shell": "shell:shell",
    "transform": "data:transform",
    "workflow": "workflow:workflow",
}
"""Where each handler is, or the function that makes it for a given `Access`."""


class Handlers(Mapping[str, Handler]):
    """All handlers by name. A handler is loaded when it is looked up; listing names loads nothing.

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
        self._modules: tuple[str, ...] = ()
        self._loaded: dict[str, Handler] = {}
        self._points: dict[str, Any] | None = None
        for each in given:
            if isinstance(each, str):
                self._modules += (each,)
            elif isinstance(each, Handler):
                self._add(each)
            else:
                raise DefinitionError(f"handlers=[{shown(each)}]: expected a function with @handler(...), or a module")

    @classmethod
    def of_settings(cls, settings: Settings) -> Handlers:
        """The handlers of the settings, with the access that these give."""
        return cls(
            settings.handlers,
            services=settings.services,
            secrets=Secrets(settings.secrets, folder=settings.secrets_folder),
            private_networks=settings.private_networks,
            shell=settings.shell,
        )

    def __getitem__(self, name: str) -> Handler:
        handler = self._loaded.get(name)
        if handler is None:
            handler = self._loaded[name] = self._find(name)
        return handler

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
            # What a replay is answered was recorded without secrets, and where it runs there may be none.
            secrets = NO_SECRETS if getattr(ctx, "replaying", False) else self.access.secrets
            config = resolved(config, secrets)  # for no service in particular: which one the handler calls is unknown
        result = handler.function(ctx, handler.validated(config))
        # A handler that gets the secrets themselves might return them, and an output is kept.
        finish = _masked if used else plain
        if handler.is_async:
            return result if handler.keeps_secrets else _later(result, finish)
        return finish(result)

    def own(self) -> Iterator[Handler]:
        """Those that are not built in. What cannot be loaded is left out: whoever names it is told."""
        try:
            names = [name for name in self if name not in _BUILT_IN]
        except DefinitionError as error:
            log.warning("handlers are left out: %s", error)
            return
        for name in names:
            try:
                yield self[name]
            except DefinitionError as error:
                log.warning("handler %s is left out: %s", name, error)

    def missing(self, name: str, config: Mapping[str, Any]) -> list[str]:
        """Why a node of this handler could not run here: the handler, a service or a secret is not here."""
        if ":" not in name and name not in self:
            return [f"there is no handler {name!r} here; give it to the engine: Engine(handlers=[...]), or in settings"]
        named = config.get("service") if name in _WITH_SERVICE else None
        is_known_later = isinstance(named, str) and "{{" in named
        problems: list[str] = []
        service = self.access.services.get(named) if isinstance(named, str) else None
        if isinstance(named, str) and service is None and not is_known_later:
            known = ", ".join(self.access.services) or "none"
            problems.append(
                f"there is no service {named!r} here; there are {known}: add [services.{named}] to the settings"
            )
        used = [*references(references_of(config)), *(service.references if service is not None else ())]
        for ref in dict.fromkeys(used):
            for_service = ANY_SERVICE if is_known_later else named if isinstance(named, str) else None
            problem = self.access.secrets.problem(ref, for_service)
            if problem is not None:
                problems.append(problem)
        return problems

    def _find(self, name: str) -> Handler:
        if name in _BUILT_IN:
            module, _, function = _BUILT_IN[name].partition(":")
            made: Any = getattr(import_module(f"{__package__}.{module}"), function)
            handler: Handler = made if isinstance(made, Handler) else made(self.access)
            return handler
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
            problem = f"there are two handlers {handler.name!r}, one of them from {other.where}"
            raise DefinitionError(problem, where=handler.where)

    def _import_given(self) -> None:
        """Several threads may do this at once: what one does again changes nothing."""
        while modules := self._modules:
            for thing in list(vars(_imported(modules[0])).values()):
                if isinstance(thing, Handler):
                    self._add(thing)
            self._modules = modules[1:]

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
        raise DefinitionError(f"handlers of {module!r} cannot be loaded: {type(error).__name__}: {error}") from error


def _loaded_point(name: str, point: Any) -> Handler:
    try:
        handler = point.load()
    except Exception as error:
        raise DefinitionError(f"handler {name!r} cannot be loaded from {point.value}: {error}") from error
    if not isinstance(handler, Handler) or handler.name != name:
        raise DefinitionError(f'{point.value}: expected the handler {name!r}, a function with @handler("{name}")')
    return handler


def _masked(result: Any) -> Any:
    from ..history.effects.record import masked_value

    return masked_value(plain(result))


async def _later(result: Awaitable[Any], finish: Callable[[Any], Any]) -> Any:
    return finish(await result)


def plain(result: Any) -> Any:
    """The output of a handler; a model is converted to data."""
    return result if type(result) is dict or not hasattr(result, "model_dump") else result.model_dump(mode="json")
