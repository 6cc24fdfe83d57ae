"""Conditions: functions of what ancestors returned, which decide whether the body of a node is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from ...base.types.shapes import Shape
from ...base.words import shown
from ...errors import DefinitionError
from ..types.signatures import SAYS_NOTHING, Signature, parameters_of, signature_of, yields
from .address import address_of, find, is_address, loaded
from .invoke import AnyBody, fill_in


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

    def holds(self, input: Mapping[str, Any], ctx: Any, outputs: Mapping[str, Any]) -> bool:
        own = {name: outputs[node] for name, node in self.takes.items() if node in outputs}
        if len(own) < len(self.takes):
            fill_in(own, self.takes, self.function, method=self.instance is not None)
        self.signature.convert(own)
        return bool(self.function(**own) if self.instance is None else self.function(self.instance(input), **own))


class AnyCondition(Protocol):
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
        return self.body.invoke(input, ctx, outputs) if self.condition.holds(input, ctx, outputs) else SKIP


def check_condition(function: object, written: str) -> Callable[..., Any]:
    """A DefinitionError if this cannot be a condition."""
    if not callable(function):
        raise DefinitionError(f"{written}: expected a function of what ancestors returned, got {shown(function)}")
    if inspect.iscoroutinefunction(function) or yields(function):
        raise DefinitionError(f"{written}: a condition is a plain function, which returns whether the node is to run")
    return function


def condition_of_nodes(function: object, nodes: Sequence[str], written: str) -> Condition:
    """The condition of a node that was built at run time: its parameters receive the outputs of these nodes, in order."""
    condition = check_condition(function, written)
    names = parameters_of(condition).names
    if len(names) != len(nodes):
        raise DefinitionError(
            f"{written}: it has the parameters {', '.join(names) or 'none'}, and had {len(nodes)} when the node was added: "
            "restore it, cancel the run, or edit the graph"
        )
    return Condition(condition, dict(zip(names, nodes, strict=True)), signature_of(condition, names, lambda _: None))


def named_condition(when: Callable[..., Any] | str) -> tuple[str, Callable[..., Any]]:
    """The address and the function of a condition that another process finds by its name."""
    function = check_condition(find(when) if isinstance(when, str) else when, f"when={shown(when)}")
    address = when if isinstance(when, str) else address_of(function)
    if not is_address(address):  # a lambda, or defined inside a function
        raise DefinitionError(
            f"when={function.__qualname__}: only its name is stored, and no other process finds a lambda or a function "
            "inside a function by its name; move it to the top level of its module"
        )
    if isinstance(when, str) or loaded(address) in (None, when):
        return address, function
    raise DefinitionError(f"when={shown(when)}: its name {address} leads to something else")
