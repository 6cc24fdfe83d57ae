"""`Delta`: what a body returns when it changes the state of its workflow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic

from ...base.words import briefly

if TYPE_CHECKING:  # so that type checkers take `Delta` alone for one whose output may be anything
    from typing_extensions import TypeVar

    Output = TypeVar("Output", default=Any)
else:
    from typing import TypeVar

    Output = TypeVar("Output")


class Delta(Generic[Output]):
    """What a body returns to change the state: fields by name, after its output if it has one.

    return Delta(notes=["three pages found"])
    return Delta({"pages": 3}, notes=["three pages found"], total=3)

    Annotated as `-> Delta[Order]`, its output is an Order.
    """

    __slots__ = ("fields", "output")

    def __init__(self, output: Output = None, /, **fields: Any) -> None:  # type: ignore[assignment]
        self.output = output
        self.fields = fields

    def __repr__(self) -> str:
        output = [] if self.output is None else [briefly(self.output)]
        return f"Delta({', '.join([*output, *(f'{name}={briefly(each)}' for name, each in self.fields.items())])})"
