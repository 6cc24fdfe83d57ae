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

from ..errors import InputError
from .commands import DEFAULT_STORE

if TYPE_CHECKING:
    from .secrets import SecretSource
    from .services import Service

PREFIX = "STEPWELL_"


@dataclass(frozen=True, slots=True)
class Settings:
    """Where runs are stored, and how workers run; None means the default of the engine."""

    store: str = DEFAULT_STORE
    broker: str | None = None
    """The URL of the broker of the Celery workers."""
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
    variables = ((PREFIX + each.name.upper(), each.name) for each in fields(Settings))
    chosen = ((variable, name, environment[variable]) for variable, name in variables if environment.get(variable))
    for where, name, value in (*_from_files(folder, problems), *chosen):
        if name in _TABLES:
            found[name], wrong = _table(name, value)
            problems += [f"{where}: {each}" for each in wrong]
        elif name in _SETTINGS:
            read, needed = _SETTINGS[name]
            try:
                found[name] = read(value)
            except (TypeError, ValueError):
                problems.append(f"{where} = {value!r}: {needed} is needed")
        else:
            problems.append(f"{where}: there is no such setting; there are {', '.join((*_SETTINGS, *_TABLES))}")
    if problems:
        raise InputError("\n".join(problems))
    return Settings(**found | {name: value for name, value in arguments.items() if value is not None})


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


def _list(value: Any) -> tuple[str, ...]:
    given = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
    if not isinstance(given, list) or not all(isinstance(each, str) and each for each in given):
        raise TypeError
    return tuple(given)


def _modules(value: Any) -> tuple[str, ...]:
    given = _list(value)
    if not all(part.isidentifier() for each in given for part in each.split(".")):
        raise TypeError
    return given


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


def _table(name: str, value: Any) -> tuple[Any, list[str]]:
    """The entries of a table (JSON in the environment), and its problems. Values are never shown: one may be a secret."""
    import json

    from .secrets import sources_of
    from .services import services_of

    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            value = None
    return services_of(value) if name == "services" else sources_of(value)


def _number(kind: type[int] | type[float]) -> Callable[[Any], int | float]:
    def read(value: Any) -> int | float:
        if isinstance(value, bool) or (kind is int and isinstance(value, float)):
            raise TypeError
        return kind(value)

    return read


_URL = (_text, "a URL")
_SECONDS = (_number(float), "a number of seconds")
_MODULES = (_modules, "a list of names of modules")
_SETTINGS: Mapping[str, tuple[Callable[[Any], Any], str]] = {
    "store": _URL,
    "max_concurrent_nodes": (_number(int), "a whole number"),
    "lease_seconds": _SECONDS,
    "close_seconds": _SECONDS,
    "broker": _URL,
    "jobs": _MODULES,
    "pipelines": (_list, "a list of pipelines (module:name, or a file)"),
    "handlers": _MODULES,
    "secrets_folder": (_text, "the path of a folder"),
    "private_networks": (_networks, "a list of networks, as 10.0.0.0/8 or 127.0.0.1:8080"),
    "shell": (_programs, "a list of programs, or true for any"),
    "server": (_text, "the URL of a server, as http://127.0.0.1:8765"),
    "token": (_text, "the text of a token"),
    "allowed_hosts": (_list, "a list of names, as stepwell.example.com"),
}
"""How each is read, and what it needs to be."""
_TABLES = ("services", "secrets")
