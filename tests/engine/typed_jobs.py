"""Jobs and workflows with types, found by address."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any

from stepwell import Context, Delta, Workflow, step, task
from stepwell.reducers import add, append, maximum, merge, union


class Level(Enum):
    LOW = 1
    HIGH = 2


@dataclass
class Line:
    sku: str
    price: Decimal = Decimal(1)


@dataclass
class Cart:
    lines: list[Line]
    day: date = date(2026, 1, 1)


@dataclass
class Best:
    line: Line | None = None
    seen: int = 0


def total(cart: Cart, factor: Decimal = Decimal(1)) -> Decimal:
    return sum((line.price for line in cart.lines), Decimal(0)) * factor


def tell(ctx: Context, of: str = "", *, loud: bool = False) -> dict[str, Any]:
    return ctx.outputs.all()


async def first_line(cart: Cart) -> Line:
    return cart.lines[0]


def better(current: Best, new: Line) -> Best:
    current.seen += 1
    if current.line is None or new.price > current.line.price:
        current.line = new
    return current


class Sold(Workflow):
    carts: list[Cart]

    class State:
        total: Annotated[Decimal, add]
        waited: Annotated[timedelta, add]
        lines: Annotated[list[Line], append]
        points: Annotated[list[tuple[int, int]], append]
        levels: Annotated[set[Level], union]
        latest: Annotated[datetime | None, maximum] = None
        by_day: Annotated[dict[date, Decimal], merge]
        best: Annotated[Best, better] = Best()

    @step(side_effects="pure")
    def open(self) -> Delta[int]:
        cart = self.carts[0]
        return Delta(
            len(self.carts),
            total=total(cart),
            waited=timedelta(seconds=90),
            lines=cart.lines[0],
            points=[(1, 2)],
            levels={Level.HIGH},
            latest=datetime(2026, 1, 2),
            by_day={cart.day: total(cart)},
            best=cart.lines[0],
        )

    @task(depends_on=open, isolation="process", side_effects="pure")
    def left(self, open: int) -> Delta[Line]:
        line = self.carts[1].lines[0]
        return Delta(
            line, total=line.price, lines=[line, line], levels={Level.LOW}, latest=datetime(2026, 1, 1), best=line
        )

    @task(depends_on=open, side_effects="pure")
    async def right(self) -> Delta:
        return Delta(waited=timedelta(days=1), points=[(3, 4), (5, 6)], by_day={date(2026, 1, 2): Decimal(7)})

    @step(depends_on=[left, right], side_effects="pure")
    def close(self, left: Line, state: State) -> dict[date, Decimal]:
        assert isinstance(left, Line)
        assert state.total == Decimal("3.5"), state.total
        assert state.waited == timedelta(days=1, seconds=90)
        assert state.lines == [Line("a", Decimal("1.5")), Line("b", Decimal(2)), Line("b", Decimal(2))]
        assert state.points == [(1, 2), (3, 4), (5, 6)]
        assert state.levels == {Level.LOW, Level.HIGH}
        assert state.latest == datetime(2026, 1, 2)
        assert state.best == Best(Line("b", Decimal(2)), 2)
        return state.by_day


SOLD = Sold(carts=[Cart([Line("a", Decimal("1.5"))]), Cart([Line("b", Decimal(2))])])


class Returning(Workflow):
    """What it returns is not what it says."""

    how: str

    @step
    def thread(self) -> list[Line]:
        return [Line("a"), Line(3)] if self.how == "thread" else []  # type: ignore[arg-type]

    @step
    async def loop(self) -> dict[str, Line]:
        return {"x y": {"price": "1"}} if self.how == "loop" else {}  # type: ignore[dict-item]

    @step(isolation="process")
    def process(self) -> Cart:
        return Cart([Line("a")], "today") if self.how == "process" else Cart([])  # type: ignore[arg-type]

    @step
    def plain(self) -> dict[str, list[int]]:
        return {"a": [1, "2"]} if self.how == "plain" else {}  # type: ignore[list-item]

    @step
    def nothing(self) -> None:
        return 3 if self.how == "nothing" else None  # type: ignore[return-value]
