"""Calls the body of a node: with a frozen instance or the args of its job, and with the outputs it takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from ...base.types.shapes import Shape
from ...core.kernel.folding import PLAIN, copied
from ..types.signatures import CONTEXT, SAYS_NOTHING, STATE, Signature, parameters_of, signature_of

_new_object: Callable[[type], Any] = object.__new__


class AnyBody(Protocol):
    @property
    def is_async(self) -> bool: ...

    @property
    def returns(self) -> Shape | None: ...

    def invoke(self, input: Mapping[str, Any], ctx: Any, outputs: Mapping[str, Any]) -> Any: ...


def fill_in(values: dict[str, Any], names: Iterable[str], function: Callable[..., Any], *, method: bool) -> None:
    """Give None to parameters whose nodes were skipped, unless they have a default."""
    for name in parameters_of(function, method=method).required:
        if name in names:
            values.setdefault(name, None)


@dataclass(slots=True, eq=False)
class MethodBody:
    """A method of a workflow class. Every call gets a frozen instance of its own."""

    workflow: type
    defaults: Mapping[str, Any]
    method: Callable[..., Any]
    needs: tuple[str, ...]
    key: Callable[..., Any] | None
    """Makes the idempotency key of the node, if it has one of its own."""
    is_async: bool
    takes_ctx: bool
    takes_state: bool
    inputs: Signature
    """The inputs that are converted."""
    signature: Signature

    @property
    def returns(self) -> Shape | None:
        return self.signature.returns

    def taking(self, needs: tuple[str, ...]) -> MethodBody:
        """The same body for a node of another version of the graph, which was promised other outputs."""
        names = parameters_of(self.method, method=True).names
        return replace(self, needs=tuple(name for name in needs if name in names))

    def invoke(self, input: Mapping[str, Any], ctx: Any, outputs: Mapping[str, Any]) -> Any:
        """The result of the body, or a coroutine that gives it when `is_async`.

        The stored input was checked when its run began. Inputs that the class has gained since have their defaults.
        """
        instance = frozen_instance(self.workflow, self.defaults, self.inputs, input)
        given = {name: outputs[name] for name in self.needs if name in outputs}
        if self.signature.parameters:
            self.signature.convert(given)
        if len(given) < len(self.needs):
            fill_in(given, self.needs, self.method, method=True)
        if self.key is not None:
            asked = parameters_of(self.key, method=True).names
            ctx._use_key(self.key(instance, **{name: given.get(name) for name in asked if name in self.needs}))
        if self.takes_ctx:
            given[CONTEXT] = ctx
        if self.takes_state:
            given[STATE] = ctx.state
        return self.method(instance, **given)


def frozen_instance(workflow: type, defaults: Mapping[str, Any], inputs: Signature, input: Mapping[str, Any]) -> Any:
    """An instance of a workflow class with this input."""
    instance = _new_object(workflow)
    values = copied_values({**defaults, **input})
    if inputs.parameters:
        inputs.convert(values)
    instance.__dict__.update(values)
    return instance


class Job(NamedTuple):
    """A function that nodes name as their job."""

    function: Callable[..., Any]
    is_async: bool
    takes_ctx: bool
    takes_state: bool
    signature: Signature = SAYS_NOTHING

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Job:
        """Annotations are checked where a workflow is written; here those that cannot be read are ignored."""
        parameters = parameters_of(function)
        signature = signature_of(function, parameters.names, _ignore)
        is_async = inspect.iscoroutinefunction(function)
        return cls(function, is_async, parameters.takes_ctx, parameters.takes_state, signature)

    def taken_from(self, needs: tuple[str, ...], args: Container[str]) -> tuple[str, ...]:
        """Those of the nodes whose outputs the function takes: the condition of its node may take others."""
        names = parameters_of(self.function).names
        return tuple(name for name in needs if name in names and name not in args)


class JobBody(NamedTuple):
    """A job with the args of one node."""

    job: Job
    args: Mapping[str, Any]
    needs: tuple[str, ...]
    has_state: bool = False
    """Whether the workflow has a state; without one, `state` is a parameter like any other."""

    @property
    def is_async(self) -> bool:
        return self.job.is_async

    @property
    def returns(self) -> Shape | None:
        return self.job.signature.returns

    def invoke(self, input: Mapping[str, Any], ctx: Any, outputs: Mapping[str, Any]) -> Any:
        """The result of the job, or a coroutine that gives it when `is_async`."""
        given = copied_values(self.args) if self.args else {}
        if self.needs:
            given |= {name: outputs[name] for name in self.needs if name in outputs}
        if self.job.signature.parameters:
            self.job.signature.convert(given)
        if any(name not in outputs for name in self.needs):
            fill_in(given, self.needs, self.job.function, method=False)
        if self.job.takes_ctx:
            given[CONTEXT] = ctx
        if self.has_state and self.job.takes_state:
            given[STATE] = ctx.state
        return self.job.function(**given)


@lru_cache(maxsize=1024)
def said_to_return(function: Callable[..., Any]) -> Shape | None:
    """The return type of a function; None if it has none, or it cannot be read or kept."""
    return signature_of(function, (), _ignore).returns


def _ignore(problem: str) -> None:
    pass


def copied_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of JSON data, with lists for tuples: one attempt must not see what another changed."""
    return {name: value if type(value) in PLAIN else copied(value) for name, value in values.items()}
