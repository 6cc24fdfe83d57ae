"""`@step` and `@task`: they return the method unchanged, with a Declaration attached. The complete class is compiled later."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum
from types import FunctionType
from typing import Any, Final, TypeAlias, TypeVar, Unpack, overload

from ...base.place import SourceLine, caller, place_of
from ...core.graph import Kind, MethodOptions
from ...errors import DefinitionError
from ..options import Options, checked_options


class Previous(Enum):
    """The type of PREVIOUS."""

    PREVIOUS = "the previous step"

    def __repr__(self) -> str:
        return self.name


PREVIOUS: Final = Previous.PREVIOUS
"""The step before this one in the chain. It is resolved when the class is complete, and never stored."""

Method = TypeVar("Method", bound=Callable[..., Any])
Job: TypeAlias = "Callable[..., Any] | str"
Reference: TypeAlias = "str | Callable[..., Any]"
Dependency: TypeAlias = "Reference | Previous"
Dependencies: TypeAlias = "Dependency | Iterable[Dependency] | None"

_ATTRIBUTE = "__stepwell_node__"


@dataclass(frozen=True, slots=True, eq=False)
class Declaration:
    """A node as it was written: `step(...)` or `task(...)`, also before it decorates a method.

    Assigned to a name in a class body, which becomes the name of the node, it needs a `job`.
    """

    kind: Kind
    depends_on: tuple[Dependency, ...]
    before: Reference | None
    after: Reference | None
    job: Job | None
    options: Options
    place: SourceLine

    def __call__(self, method: Method, /) -> Method:
        if not isinstance(method, FunctionType):
            raise DefinitionError(
                f"@{self.kind} goes on a method (def or async def), not on {method!r}", where=self.place
            )
        first = declared(method)
        # `functools.wraps` copies the declaration of the method that it wraps.
        if first is not None and first is not declared(getattr(method, "__wrapped__", None)):
            raise DefinitionError(
                f"{method.__qualname__} is a {first.kind} already; a method is one node, so one @step or @task goes on it",
                where=place_of(method),
            )
        setattr(method, _ATTRIBUTE, replace(self, place=place_of(method)))
        return method


def declared(value: object) -> Declaration | None:
    """The declaration that a value in a class body is or carries."""
    if isinstance(value, Declaration):
        return value
    return getattr(value, _ATTRIBUTE, None) if isinstance(value, FunctionType) else None


def wrapped_declaration(value: object) -> Declaration | None:
    """The declaration of a method that another decorator turned into something else: a static method, a property ..."""
    if isinstance(value, FunctionType) or type(value).__module__ not in ("builtins", "functools"):
        return None  # other objects are not asked: some answer any question, and some fail
    inner = (getattr(value, name, None) for name in ("__wrapped__", "fget", "func"))
    return next(filter(None, map(declared, inner)), None)


@overload
def step(method: Method, /) -> Method: ...
@overload
def step(
    *,
    depends_on: Dependencies = PREVIOUS,
    also_depends_on: Reference | Iterable[Reference] | None = None,
    before_step: Reference | None = None,
    after_step: Reference | None = None,
    job: Job | None = None,
    **options: Unpack[MethodOptions],
) -> Declaration: ...
def step(
    method: Callable[..., Any] | None = None,
    /,
    *,
    depends_on: Dependencies = PREVIOUS,
    also_depends_on: Reference | Iterable[Reference] | None = None,
    before_step: Reference | None = None,
    after_step: Reference | None = None,
    job: Job | None = None,
    **options: Unpack[MethodOptions],
) -> Any:
    """A step of the chain: it runs after the step before it, unless `depends_on` says otherwise.

        class OrderWorkflow(Workflow):
            @step
            def validate(self): ...
            @step(retry=3)
            def charge(self): ...
            @step(after_step=validate)          # validate -> audit -> charge
            def audit(self): ...
            notify = step(job="shop.mail:send_receipt")

    `depends_on` takes names, methods, or a list of them; None makes an entry point. `also_depends_on=x` is short for
    `depends_on=[PREVIOUS, x]`. `was` is the name, or a list of names, that this node had in earlier versions of the class, so
    that runs which have done it do not do it again.

    `side_effects` says what a replay may do with the body: run it again if it is "pure" or "recordable" (it uses the outside
    world only through `ctx`), or only give its recorded output ("opaque"). `idempotency_key` is a function of `self`, and of
    the outputs the method takes, that makes the `ctx.idempotency_key` of this node.

    `transaction=True` gives the body `ctx.db`, a connection to the PostgreSQL server of the store with a transaction: what the
    body writes and its completion are committed together, or neither is.
    """
    place = caller()
    if before_step is not None and after_step is not None:
        raise DefinitionError("a step is inserted at one place: name before_step or after_step, not both", where=place)
    if also_depends_on is not None and depends_on is not PREVIOUS:
        raise DefinitionError(
            "also_depends_on adds to the previous step; with depends_on, name everything there", where=place
        )
    for option, anchor in (("before_step", before_step), ("after_step", after_step)):
        if anchor is not None and not isinstance(anchor, str) and not callable(anchor):
            raise DefinitionError(f"{option}={anchor!r}: expected one step, by its name or its method", where=place)
    depends = _dependencies(depends_on, place)
    if also_depends_on is not None:
        depends += _dependencies(also_depends_on, place)
    checked = checked_options(place, options, MethodOptions)
    declaration = Declaration("step", depends, before_step, after_step, job, checked, place)
    return declaration if method is None else declaration(method)


def task(
    method: None = None,
    /,
    *,
    depends_on: Dependencies = PREVIOUS,
    job: Job | None = None,
    **options: Unpack[MethodOptions],
) -> Declaration:
    """A node beside the chain: it runs after what `depends_on` names, and only nodes that name it wait for it.

    @task(depends_on=validate, retry=Retry(max_attempts=3), timeout=30)
    def check_fraud(self, validate): ...
    """
    place = caller()
    depends = _dependencies(depends_on, place)
    if method is not None or PREVIOUS in depends:
        raise DefinitionError(
            "a task is not in the chain, so nothing is previous to it: name what it runs after with "
            "@task(depends_on=...), or None for an entry point",
            where=place,
        )
    return Declaration("task", depends, None, None, job, checked_options(place, options, MethodOptions), place)


def _dependencies(given: Dependencies, place: SourceLine) -> tuple[Dependency, ...]:
    if given is None:
        return ()
    if isinstance(given, str | Previous) or callable(given):
        return (given,)
    dependencies = tuple(given) if isinstance(given, Iterable) else (given,)
    for each in dependencies:
        if not isinstance(each, str | Previous) and not callable(each):
            raise DefinitionError(
                f"{each!r} cannot be a dependency: give names, methods, or a list of them", where=place
            )
    return dependencies
