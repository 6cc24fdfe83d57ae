"""Which code may run for names in a graph, a row or a file.

What a program of the user stored in an embedded store is trusted like that program: `ANYTHING` imports what it names. Rows of a
server may name any code, so a `Registry` finds for them only what is *registered*:

    a class that was given to the engine, or started by it, and all that this class names
    a function that was given to a Builder which this engine started
    what is defined in a module that is allowed, or in a module below it: Engine(jobs=["shop.jobs"])

Data (a document, an imported graph, a cassette, a trigger) also chooses the arguments, and its author may be a stranger. For it
`ForData` finds only what was registered for data: public names of allowed modules.

`shop.jobs` allows `shop.jobs:charge` and `shop.jobs.cards:charge`, but not `shop.jobs:os.system`, nor a function that it
imported from elsewhere: what an address leads to must be defined in an allowed module. Nothing is imported to find out that
something is not allowed. No finder finds a function of Stepwell itself: see `OwnJobs`.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any, Protocol

from ...base.importable import loaded_module, module_of
from ...core.graph import Graph
from ...core.graph.branching import StoredCondition
from ...errors import DefinitionError
from ..classes.workflow import Workflow
from .address import address_of, find, find_exception, loaded

OWN = __name__.partition(".")[0]


class Finder(Protocol):
    """Finds code by name."""

    def find(self, address: str) -> Any:
        """What is at `package.module:Name`; a DefinitionError says why there is nothing."""
        ...

    def find_exception(self, name: str) -> type[BaseException]:
        """The exception class `package.module.Name`."""
        ...


class OwnJobs(Protocol):
    """The jobs of Stepwell itself, for the nodes of trusted graphs: the bodies of pipelines."""

    def job(self, address: str, args: Mapping[str, Any]) -> Callable[..., Any]:
        """The function for a node with these arguments; a DefinitionError says what this process was not given."""
        ...


def is_own(address: str) -> bool:
    """Whether an address is one of Stepwell itself."""
    return address.partition(":")[0].partition(".")[0] == OWN


class _Anything:
    """Finds everything that can be imported, but for Stepwell itself."""

    @staticmethod
    def find(address: str) -> Any:
        _refuse_own(address)
        return find(address)

    find_exception = staticmethod(find_exception)


ANYTHING: Finder = _Anything()


class NotRegistered(DefinitionError):
    """What came from elsewhere names code that is not registered here. It was not imported."""

    def __init__(self, what: str, module: str, why: str = "is not registered here") -> None:
        allow = f'allow its module: Engine(jobs=["{module}"]), --jobs {module}, or jobs = ["{module}"] in settings'
        super().__init__(
            f"{what} {why}, and what names it came from elsewhere (an imported graph, a cassette, a document, a server); "
            f"if you trust it, {allow}"
        )
        name = what.rpartition(":")[2]
        self.named_by_builder = (
            f"{what} {why}: it is given to the Builder as text, and this store is a server, to which others may write; so a "
            f"text alone is not run. Give the function itself (`job={name}` instead of {what!r}), or {allow}; workers in "
            f"other processes need the module allowed in either case"
        )
        """The same message for the author of the Builder."""


class Unreachable(NotRegistered):
    """Data names what no setting allows it."""

    def __init__(self, message: str) -> None:
        DefinitionError.__init__(self, message)
        self.named_by_builder = message


def _refuse_own(address: str) -> None:
    if is_own(address):
        raise Unreachable(
            f"{address} is a function of Stepwell itself: it runs only for a pipeline that this process was given, with the "
            f"arguments of the run that was started for it, and never for an edited graph, a document or a trigger"
        )


class AllowedModules:
    """Finds what is defined in modules that are allowed, or in modules below them."""

    def __init__(self, modules: Iterable[str] = ()) -> None:
        self._modules = frozenset(modules)

    def find(self, address: str) -> Any:
        _refuse_own(address)
        module = address.partition(":")[0]
        if not self.allows_module(module):
            raise NotRegistered(address, module)
        target = find(address)
        if not self._is_defined_here(target):
            home = _home(target)
            why = f"is defined in {home}, which is not allowed here" if home else "is not defined in a module"
            raise NotRegistered(address, home or module, why)
        return target

    def find_exception(self, name: str) -> type[BaseException]:
        refused: list[str] = []

        def look(module: str) -> ModuleType | None:
            holder = loaded_module(module)  # looking at it is harmless
            if holder is None and not self.allows_module(module):
                refused.append(module)
                return None
            return holder or _imported(module)

        try:
            return find_exception(name, look)
        except DefinitionError:
            if not refused:
                raise
            raise NotRegistered(f"retry_on={name!r}", refused[0]) from None

    def allows(self, address: str) -> bool:
        """Whether the module of an address is allowed."""
        module, is_address, _ = address.partition(":")
        return bool(is_address) and self.allows_module(module)

    def allows_module(self, module: str) -> bool:
        return any(module == each or module.startswith(f"{each}.") for each in self._modules)

    def _is_defined_here(self, thing: object) -> bool:
        home = _home(thing)
        return home is not None and self.allows_module(home)


class ForData(AllowedModules):
    """Finds what was registered for data: public names of allowed modules."""

    def knows(self, name: str) -> bool:
        """Whether an address, or the name of an exception, is registered. Imports nothing: modules that are not loaded are
        unknown."""
        module, is_address, _ = name.partition(":")
        if not is_address:
            home = name.rpartition(".")[0]
            return home in ("", "builtins") or self.allows_module(home)
        if is_own(name) or not self.allows_module(module) or self._is_private(name):
            return False
        return self._is_defined_here(loaded(name))

    def find(self, address: str) -> Any:
        _refuse_own(address)
        if self.allows(address) and self._is_private(address):
            raise Unreachable(
                f"{address} is private, as its name begins with _: no edited graph, document, cassette or trigger may name it. "
                f"Give what they need a public name"
            )
        return super().find(address)

    def _is_private(self, address: str) -> bool:
        """Whether a part of an address in an allowed module begins with `_`, apart from what is allowed by its whole name."""
        module, _, path = address.partition(":")
        below = min(
            module.removeprefix(each) for each in self._modules if module == each or module.startswith(f"{each}.")
        )
        return any(part.startswith("_") for part in (*below.split("."), *path.split(".")))


class Registry(AllowedModules):
    """Finds what is registered, for the rows of a server."""

    def __init__(self, modules: Iterable[str] = ()) -> None:
        super().__init__(modules)
        self._things: dict[str, Any] = {}
        """Classes and functions that were given to the engine, by address."""
        self._names: set[str] = set()
        """The names in those classes: addresses of jobs, and exceptions."""
        self.for_data = ForData(self._modules)

    def add_workflow(self, workflow: type[Workflow]) -> None:
        if self._things.get(workflow.workflow_target) is workflow:
            return
        self._things[workflow.workflow_target] = workflow
        self.add_functions(workflow._compiled.jobs)
        if workflow._compiled.graph is not None:
            self._names |= names_in(workflow._compiled.graph)

    def add_functions(self, functions: Mapping[str, Callable[..., Any]]) -> None:
        self._things.update({address: function for address, function in functions.items() if not is_own(address)})

    def add_state(self, declared: type) -> None:
        self._things[address_of(declared)] = declared

    def find(self, address: str) -> Any:
        if address in self._things:
            return self._things[address]
        if address in self._names:
            return ANYTHING.find(address)
        return super().find(address)

    def find_exception(self, name: str) -> type[BaseException]:
        return find_exception(name) if name in self._names else super().find_exception(name)


def _imported(module: str) -> ModuleType | None:
    """An allowed module, or None: its error is reported when its jobs are looked for."""
    try:
        return importlib.import_module(module)
    except (Exception, SystemExit):
        return None


def _home(thing: object) -> str | None:
    """The module that something was defined in, if it says so."""
    module = getattr(thing, "__module__", None)
    return module_of(thing) if isinstance(module, str) and module else None  # type: ignore[arg-type]


def calls_in(graph: Graph) -> set[tuple[str, str, tuple[str, ...], bool, str | None]]:
    """Which jobs the nodes of a graph call, with which arguments and on which condition."""
    return {
        (spec.job, json.dumps(dict(spec.args), sort_keys=True), spec.needs, spec.templated, spec.when)
        for spec in graph
        if spec.job is not None
    }


def names_in(graph: Graph) -> set[str]:
    """Everything that a graph names: addresses of jobs, conditions and of a state, and exceptions."""
    names: set[str] = set() if graph.state is None else {graph.state}
    for spec in graph:
        if spec.job is not None:
            names.add(spec.job)
        condition = None if spec.when is None or spec.templated else StoredCondition.read(spec.when)
        if condition is not None:
            names.add(condition.address)
        if spec.retry is not None:
            names.update(spec.retry.names() or ())
    return names
