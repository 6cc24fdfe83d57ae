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

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from .commands import DEFAULT_STORE
from .forms.problems import Problems

if TYPE_CHECKING:
    from .setting_types import (
        Colour,
        Count,
        Duration,
        Environment,
        Folder,
        Hosts,
        Modules,
        Networks,
        Pipelines,
        Programs,
        Secrets,
        Server,
        Services,
        Token,
        TraceUrl,
        Url,
    )

PREFIX = "STEPWELL_"


@dataclass(frozen=True, slots=True)
class Settings:
    """Where runs are stored, and how workers run; None means the default of the engine."""

    store: Url = DEFAULT_STORE
    broker: Url | None = None
    """The URL of the broker of the Celery workers."""
    max_concurrent_nodes: Count | None = None
    lease_seconds: Duration | None = None
    close_seconds: Duration | None = None
    """How long bodies may go on when a worker is asked to end."""
    pipelines: Pipelines = ()
    """What `stepwell pipeline` works on when none is named: module:name, or files."""
    jobs: Modules = ()
    """Modules whose functions may run for what came from elsewhere."""
    handlers: Modules = ()
    """Modules that hold handlers."""
    services: Services = field(default_factory=dict)
    """What documents may call by name."""
    secrets: Secrets = field(default_factory=dict)
    """Where secrets are, and which services they are for."""
    secrets_folder: Folder | None = None
    """A folder with a file for each secret."""
    private_networks: Networks = ()
    """Private addresses that documents may reach by HTTP."""
    shell: Programs = False
    """Programs that documents may start."""
    server: Server | None = None
    """The URL of a server that commands ask instead of a store."""
    token: Token | None = None
    """What the server knows them by."""
    allowed_hosts: Hosts = ()
    """Names that the server is called by, besides loopback and addresses."""
    environment: Environment | None = None
    """What the web UI calls this server, as in production."""
    environment_colour: Colour = "grey"
    """The colour of that name."""
    trace_url: TraceUrl | None = None
    """Where the traces of a run or node are: the web UI puts ids in the place of {run} and {node}."""

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

    @property
    def for_pages(self) -> dict[str, Any]:
        """What the pages of a server show of it."""
        return {name: getattr(self, name) for name in ("environment", "environment_colour", "trace_url")}


def read_settings(arguments: Mapping[str, Any], environment: Mapping[str, str], folder: Path) -> Settings:
    """The settings; an InputError lists everything that is wrong with them."""
    errors: list[str] = []
    settings: dict[str, Any] = {}
    variables = {each.name: PREFIX + each.name.upper() for each in fields(Settings)}
    in_environment = {name: environment[key] for name, key in variables.items() if environment.get(key)}
    for table, key in (*_from_files(folder, errors), (in_environment, PREFIX)):
        if table:
            problems = Problems()
            settings |= _read_table(table, problems)
            for problem in problems:
                path = problem.path[2:]
                where = f"{key}{path.upper() if key == PREFIX else path}"
                errors.append(f"{where}: {problem.message}")
    if errors:
        raise InputError("\n".join(errors))
    return Settings(**settings | {name: value for name, value in arguments.items() if value is not None})


def checked_services(services: Mapping[str, Any]) -> Services:
    """The services given to an engine; InputError lists all problems."""
    if not services:
        return {}
    problems = Problems()
    settings = _read_table({"services": services}, problems)
    if problems:
        raise InputError("\n".join(f"{problem.path[2:]}: {problem.message}" for problem in problems))
    checked: Services = settings["services"]
    return checked


def _read_table(table: Mapping[str, Any], problems: Problems) -> dict[str, Any]:
    from .setting_types import read_table

    return read_table(Settings, table, problems)


def _from_files(folder: Path, errors: list[str]) -> Iterator[tuple[dict[str, Any], str]]:
    """The table of the first file that has one, and how problems name the file."""
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
            errors.append(f"{file}: {error}")
            return
        for part in path:
            table = table.get(part, {}) if isinstance(table, dict) else {}
        if isinstance(table, dict):
            yield table, f"{file}: "
        return
