"""What can be set from outside, read once into one frozen object.

Arguments win over the environment (`STEPWELL_STORE`, ...), which wins over `stepwell.toml` in the working directory, or
without one over `[tool.stepwell]` in its `pyproject.toml`:

    store = "sqlite:///var/orders.db"
    max_concurrent_nodes = 16
    lease_seconds = 60
    jobs = ["shop.jobs"]

    handlers = ["shop.handlers"]
    private_networks = ["10.1.0.0/16"]

    [services.crm]
    base_url = "https://crm.example.com/api"
    bearer = "secret:CRM_TOKEN"

    [secrets]
    CRM_TOKEN = { file = "/run/secrets/crm", services = ["crm"] }

In the environment a list has commas in between, and a table is JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .commands import DEFAULT_STORE
from .errors import InputError

if TYPE_CHECKING:
    from .secrets import SecretSource
    from .services import Service

PREFIX = "STEPWELL_"


@dataclass(frozen=True, slots=True)
class Settings:
    """Where runs are kept, and how a worker works; None stands for the default of the engine."""

    store: str = DEFAULT_STORE
    broker: str | None = None
    """The URL of the broker through which Celery workers are told of work."""
    max_concurrent_nodes: int | None = None
    lease_seconds: float | None = None
    close_seconds: float | None = None
    """How long bodies may go on when a worker is asked to end."""
    pipelines: tuple[str, ...] = ()
    """What `stepwell pipeline` works on when none is named: module:name, or files."""
    jobs: tuple[str, ...] = ()
    """Modules whose functions may run for what came from elsewhere."""
    handlers: tuple[str, ...] = ()
    """Modules that hold handlers."""
    services: Mapping[str, Service] = field(default_factory=dict)
    """What documents may call by name."""
    secrets: Mapping[str, SecretSource] = field(default_factory=dict)
    """Where secrets are, and which services they are for."""
    secrets_folder: str | None = None
    """A folder with a file for each secret."""
    private_networks: tuple[str, ...] = ()
    """Private addresses that documents may reach by HTTP."""
    shell: tuple[str, ...] | bool = False
    """Programs that documents may start."""
    server: str | None = None
    """The URL of a server that commands ask instead of a store."""
    token: str | None = None
    """What the server knows them by."""
    allowed_hosts: tuple[str, ...] = ()
    """Names that the server is called by, besides loopback and addresses."""

    @property
    def for_workers(self) -> dict[str, Any]:
        """What an engine that works takes besides its store."""
        chosen: dict[str, Any] = {
            "jobs": self.jobs or None,
            "max_concurrent_nodes": self.max_concurrent_nodes,
            "lease_seconds": self.lease_seconds,
            "close_seconds": self.close_seconds,
        }
        return {name: value for name, value in chosen.items() if value is not None}


def read_settings(arguments: Mapping[str, Any], environment: Mapping[str, str], folder: Path) -> Settings:
    """The settings; an InputError lists everything that is wrong with them."""
    problems: list[str] = []
    found: dict[str, Any] = {}
    for where, name, value in (*_from_files(folder, problems), *_from_environment(environment)):
        if name not in _READ and name not in _TABLES:
            problems.append(f"{where}: there is no such setting; there are {', '.join((*_READ, *_TABLES))}")
            continue
        if name in _TABLES:
            found[name], wrong = _TABLES[name](_table(value))
            problems += [f"{where}: {each}" for each in wrong]
            continue
        try:
            found[name] = _READ[name](value)
        except (TypeError, ValueError):
            problems.append(f"{where} = {value!r}: {_NEEDED[name]} is needed")
    if problems:
        raise InputError("\n".join(problems))
    return Settings(**found | {name: value for name, value in arguments.items() if value is not None})


def _from_environment(environment: Mapping[str, str]) -> Iterator[tuple[str, str, Any]]:
    for each in fields(Settings):
        variable = PREFIX + each.name.upper()
        if environment.get(variable):
            yield variable, each.name, environment[variable]


def _from_files(folder: Path, problems: list[str]) -> Iterator[tuple[str, str, Any]]:
    for file, path in (("stepwell.toml", ()), ("pyproject.toml", ("tool", "stepwell"))):
        try:
            text = (folder / file).read_text("utf-8")
        except OSError:
            continue
        if path and path[-1] not in text:
            continue
        import tomllib

        try:
            table: Any = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            problems.append(f"{file}: {error}")
            return
        for part in path:
            table = table.get(part, {}) if isinstance(table, dict) else {}
        yield from ((f"{file}: {name}", name, value) for name, value in table.items())
        return


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _names(value: Any) -> tuple[str, ...]:
    given = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
    if not isinstance(given, list) or not all(
        isinstance(each, str) and all(map(str.isidentifier, each.split("."))) for each in given
    ):
        raise TypeError
    return tuple(given)


def _list(value: Any) -> tuple[str, ...]:
    given = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
    if not isinstance(given, list) or not all(isinstance(each, str) and each for each in given):
        raise TypeError
    return tuple(given)


def _networks(value: Any) -> tuple[str, ...]:
    from .networks import allowed_networks

    given = _list(value)
    try:
        allowed_networks(given)
    except InputError:
        raise TypeError from None
    return given


def _programs(value: Any) -> tuple[str, ...] | bool:
    if value in (True, "true"):
        return True
    return False if value in (False, "false") else _list(value)


def _table(value: Any) -> Any:
    """A table, in the environment as JSON. It is never shown: somebody may have written a secret into it."""
    if not isinstance(value, str):
        return value
    import json

    try:
        return json.loads(value)
    except ValueError:
        return None


def _services(table: Any) -> tuple[Any, list[str]]:
    from .services import services_of

    return services_of(table)


def _sources(table: Any) -> tuple[Any, list[str]]:
    from .secrets import sources_of

    return sources_of(table)


def _number(kind: type[int] | type[float]) -> Callable[[Any], int | float]:
    def read(value: Any) -> int | float:
        if isinstance(value, bool) or (kind is int and isinstance(value, float)):
            raise TypeError
        return kind(value)

    return read


_READ: Mapping[str, Callable[[Any], Any]] = {
    "store": _text,
    "max_concurrent_nodes": _number(int),
    "lease_seconds": _number(float),
    "close_seconds": _number(float),
    "broker": _text,
    "jobs": _names,
    "pipelines": _list,
    "handlers": _names,
    "secrets_folder": _text,
    "private_networks": _networks,
    "shell": _programs,
    "server": _text,
    "token": _text,
    "allowed_hosts": _list,
}
_TABLES: Mapping[str, Callable[[Any], tuple[Any, list[str]]]] = {"services": _services, "secrets": _sources}
_NEEDED = {
    "store": "a URL",
    "broker": "a URL",
    "max_concurrent_nodes": "a whole number",
    "lease_seconds": "a number of seconds",
    "close_seconds": "a number of seconds",
    "jobs": "a list of names of modules",
    "pipelines": "a list of pipelines (module:name, or a file)",
    "handlers": "a list of names of modules",
    "secrets_folder": "the path of a folder",
    "private_networks": "a list of networks, as 10.0.0.0/8 or 127.0.0.1:8080",
    "shell": "a list of programs, or true for any",
    "server": "the URL of a server, as http://127.0.0.1:8765",
    "token": "the text of a token",
    "allowed_hosts": "a list of names, as stepwell.example.com",
}
