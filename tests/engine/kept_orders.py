"""A workflow whose runs an older version of Stepwell has stored (`files/before-types.db`), when data were plain JSON.

Then `lines` was `list[dict[str, Any]]`, `day` a text, and a price a text too. Today they have types.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Annotated

from stepwell import Context, Delta, Workflow, step
from stepwell.reducers import add


@dataclass
class Line:
    sku: str
    price: Decimal


@dataclass
class Priced(Line):
    """Has a field that what is stored does not have."""

    count: int = 1


class Order(Workflow):
    lines: list[Line]
    day: date

    class State:
        seen: Annotated[int, add] = 0
        last: str = ""

    @step(side_effects="pure")
    def check(self) -> Delta[list[Line]]:
        return Delta([line for line in self.lines if line.sku], seen=1, last="check")

    @step(side_effects="pure")
    async def price(self, check: list[Priced]) -> Delta[Decimal]:
        return Delta(sum((line.price * line.count for line in check), Decimal(0)), seen=1, last="price")

    @step(side_effects="recordable")
    def ship(self, ctx: Context, price: Decimal) -> str:
        number = ctx.random.randrange(1000)
        return f"{self.day:%d.%m.%Y} {price} {number}"

    @step(isolation="process", side_effects="pure")
    def close(self, ship: str, state: State) -> str:
        return f"{ship} {state.seen} {state.last}"
