"""Conditions: functions of what ancestors returned, which decide whether the body of a node is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Mapping
from typing import Any, Final, NamedTuple, Protocol

from ...base.types.shapes import Shape
from ...base.words import shown
from ...core.graph.branching import StoredCondition
from ...errors import DefinitionError
from ..types.signatures import SAYS_NOTHING, Signature, parameters_of, signature_of, yields
from .address import address_of, find, is_address, loaded
from .invoke import AnyBody, copied_values, fill_in


class Skip:
    """The type of SKIP."""

    def __repr__(self) -> str:
        return "SKIP"


SKIP: Final = Skip()
"""What a body with a condition gives instead of a result when its condition does not hold."""


class Condition(NamedTuple):
    """A function of what ancestors returned, which decides whether the body of a node is called."""

    function: Callable[..., Any]
    takes: Mapping[str, str]
    """By parameter: the id of the node whose output it receives."""
    signature: Signature = SAYS_NOTHING
    instance: Callable[[Mapping[str, Any]], Any] | None = None
    """Makes the instance of a workflow class for the input of a run, where the function takes `self`."""

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", "condition")

    def holds(self, input: Mapping[str, Any], ctx: Any, outputs: Mapping[str, Any]) -> bool:
        own = copied_values({name: outputs[node] for name, node in self.takes.items() if node in outputs})
        if len(own) < len(self.takes):
            fill_in(own, self.takes, self.function, method=self.instance is not None)
        self.signature.convert(own)
        result = self.function(**own) if self.instance is None else self.function(self.instance(input), **own)
        if inspect.isawaitable(result) or inspect.isgenerator(result) or inspect.isasyncgen(result):
            if inspect.iscoroutine(result):
                result.close()
            raise DefinitionError(f"{self.name} gave {shown(result)}, and not whether the node is to run: {_PLAIN}")
        return bool(result)


RAISED_BY_CONDITION = "raised by its condition"
"""How the note begins that an error of a condition gets."""
_PLAIN = "a condition is a plain function, which returns whether the node is to run"


class AnyCondition(Protocol):
    @property
    def name(self) -> str: ...

    def holds(self, input: Mapping[str, Any], ctx: Any, outputs: Mapping[str, Any]) -> bool: ...


class ConditionalBody(NamedTuple):
    """A body that is called only if a condition holds."""

    body: AnyBody
    condition: AnyCondition

    @property
    def is_async(self) -> bool:
        return self.body.is_async

    @property
    def returns(self) -> Shape | None:
        return self.body.returns

    def invoke(self, input: Mapping[str, Any], ctx: Any, outputs: Mapping[str, Any]) -> Any:
        """What the body gives, or SKIP."""
        try:
            holds = self.condition.holds(input, ctx, outputs)
        except Exception as error:
            error.add_note(f"{RAISED_BY_CONDITION} {self.condition.name}")
            raise
        return self.body.invoke(input, ctx, outputs) if holds else SKIP


def check_condition(function: object, written: str) -> Callable[..., Any]:
    """A DefinitionError if this cannot be a condition."""
    if not callable(function) or isinstance(function, type):
        raise DefinitionError(f"{written}: expected a function of what ancestors returned, got {shown(function)}")
    for each in (function, getattr(function, "__call__", function)):  # noqa: B004  # of an object that can be called
        if inspect.iscoroutinefunction(each) or yields(each):
            raise DefinitionError(f"{written}: {_PLAIN}")
    try:
        inspect.signature(function)
    except (TypeError, ValueError):
        raise DefinitionError(f"{written}: expected a function whose parameters are named like ancestors") from None
    return function


def taken_by(
    function: Callable[..., Any], nodes: Container[str], written: str, *, method: bool = False
) -> tuple[str, ...]:
    """The parameters of a condition that are named like nodes; a DefinitionError if another one has no default."""
    parameters = parameters_of(function, method=method)
    for name in parameters.required:
        if name not in nodes or name not in parameters.names:
            raise DefinitionError(f"{written}: nothing fills its parameter {name!r}; it takes ancestors by name")
    return tuple(name for name in parameters.names if name in nodes)


def found_condition(stored: StoredCondition, find: Callable[[str], Any]) -> Condition:
    """The condition that a graph names; a DefinitionError if its function is missing, or takes other parameters now."""
    written = f"when={stored.address}"
    function = check_condition(find(stored.address), written)
    names = taken_by(function, stored.takes, written)
    if len(names) < len(stored.takes):
        gone = next(name for name in stored.takes if name not in names)
        raise DefinitionError(f"{written}: it has no parameter {gone!r} any more, which stands for a node of the graph")
    return Condition(function, stored.takes, signature_of(function, names, lambda _: None))


def named_condition(when: Callable[..., Any] | str) -> tuple[str, Callable[..., Any]]:
    """The address and the function of a condition that another process finds by its name."""
    function = check_condition(find(when) if isinstance(when, str) else when, f"when={shown(when)}")
    if not hasattr(function, "__qualname__") or not isinstance(getattr(function, "__module__", None), str):
        raise DefinitionError(
            f"when={shown(when)}: expected a function of a module, or its address package.module:function"
        )
    address = when if isinstance(when, str) else address_of(function)
    if not is_address(address):  # a lambda, or defined inside a function
        raise DefinitionError(
            f"when={function.__qualname__}: only its name is stored, and no other process finds a lambda or a function "
            "inside a function by its name; move it to the top level of its module"
        )
    if isinstance(when, str) or loaded(address) in (None, when):
        return address, function
    raise DefinitionError(f"when={shown(when)}: its name {address} leads to something else")
