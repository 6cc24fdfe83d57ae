"""Handlers that only work on data: `transform`, `compute`, `aggregate`.

They have no side effects, so a replay runs them again. `transform` and `compute` return their rendered config: the template
language does the work, under its limits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from ..base.codec import text
from ..errors import PermanentError
from .configs import kind_of
from .definition import Handler
from .strict import Strict

_MAIN = "result"


class TransformConfig(Strict):
    template: Any = Field(description="what to make: a text, a list or an object, with templates in it")


class ComputeConfig(Strict):
    expression: Any = Field(description="an expression over the input and the ancestors of the node, without braces")


class Result(Strict):
    result: Any = Field(description="what was made")


class AggregateConfig(Strict):
    how: Literal["mapping", "list", "sum", "join", "merge"] = Field(
        "mapping",
        description="mapping: an object by id of the parents; list: in the order of the dependencies; sum: of numbers; join: "
        "of texts, with the separator in between; merge: of objects, later parents win",
    )
    field: str | None = Field(
        _MAIN,
        description="which field of each parent's output is taken, where it has it; null takes whole outputs",
    )
    separator: str = Field("\n", description="what stands between the texts of a join")


class Aggregate(Strict):
    result: Any = Field(description="what was made of the parents' outputs")
    count: int = Field(description="how many parents there are")


transform = Handler(
    "transform",
    lambda ctx, config: {"result": config.template},
    TransformConfig,
    Result,
    "Make text or data from the outputs of ancestors.",
    {"template": {"title": "{{ fetch.result.title }}", "words": "{{ fetch.result.words }}"}},
    side_effects="pure",
    takes_secrets=False,
)
compute = Handler(
    "compute",
    lambda ctx, config: {"result": config.expression},
    ComputeConfig,
    Result,
    "Compute a value from the input and the outputs of ancestors.",
    {"expression": "order.result.price * input.quantity"},
    side_effects="pure",
    expressions=frozenset({"expression"}),
    takes_secrets=False,
)


def _aggregated(ctx: Any, config: AggregateConfig) -> dict[str, Any]:
    outputs: Mapping[str, Any] = ctx.outputs.some(ctx.parents)
    field = config.field
    taken = {
        parent: output[field] if isinstance(output, dict) and field in output else output
        for parent, output in outputs.items()
    }
    return {"result": _combined(taken, config), "count": len(taken)}


aggregate = Handler(
    "aggregate",
    _aggregated,
    AggregateConfig,
    Aggregate,
    "Bring the outputs of the nodes it depends on together.",
    {"how": "mapping"},
    side_effects="pure",
    takes_secrets=False,
)


def _combined(taken: Mapping[str, Any], config: AggregateConfig) -> Any:
    if config.how == "mapping":
        return dict(taken)
    if config.how == "list":
        return list(taken.values())
    if config.how == "join":
        return config.separator.join(each if isinstance(each, str) else text(each) for each in taken.values())
    if config.how == "sum":
        for parent, each in taken.items():
            if isinstance(each, bool) or not isinstance(each, int | float):
                raise _not(parent, each, "a number", "sum")
        total = sum(taken.values())
        if isinstance(total, float) and total - total != 0:  # infinite, or not a number
            raise PermanentError("aggregate: the sum is too large for a number")
        return total
    merged: dict[str, Any] = {}
    for parent, each in taken.items():
        if not isinstance(each, dict):
            raise _not(parent, each, "an object", "merge")
        merged |= each
    return merged


def _not(parent: str, value: Any, needed: str, how: str) -> PermanentError:
    gave = kind_of(value)
    return PermanentError(f"aggregate with how: {how} needs {needed} of every parent, and {parent!r} gave {gave}")
