"""One value of every type that can be kept, and a workflow for each that hands it on through everything."""

from __future__ import annotations

import collections.abc
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, Flag, IntEnum, StrEnum
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, NotRequired, Optional, TypedDict, TypeVar
from uuid import UUID

import attrs
import pydantic

from stepwell import Delta, Workflow, step
from stepwell.base.types import register

Item = TypeVar("Item")


class Colour(Enum):
    RED = "red"
    TWO = 2


class Size(IntEnum):
    SMALL = 1
    LARGE = 2


class Letter(StrEnum):
    A = "a"
    B = "b"


class Rights(Flag):
    READ = 1
    WRITE = 2


@dataclass(frozen=True, order=True)
class Line:
    sku: str
    price: Decimal
    count: int = 1


@dataclass
class Order:
    id: UUID
    placed: datetime
    lines: list[Line]
    tags: set[str] = field(default_factory=set)
    by_day: dict[date, int] = field(default_factory=dict)
    note: str | None = None
    _: KW_ONLY
    colour: Colour = Colour.RED
    total: Decimal = field(init=False)

    def __post_init__(self) -> None:
        self.total = sum((line.price for line in self.lines), Decimal(0))


@dataclass
class Page(Generic[Item]):
    items: list[Item]
    next: Page[Item] | None = None


@dataclass
class Days(Page[date]):
    title: str = ""


@dataclass
class Tree:
    value: Decimal
    children: list[Tree] = field(default_factory=list)


@dataclass
class Card:
    number: str
    until: date


@dataclass
class Bank:
    iban: str


@dataclass
class Paid:
    kind: Literal["paid"]
    at: datetime


@dataclass
class Refused:
    kind: Literal["refused"]
    at: datetime


@dataclass
class Payment:
    by: Card | Bank | None
    tried: dict[str, list[Card | Bank]] = field(default_factory=dict)


@attrs.define
class Parcel:
    _weight: float
    to: Path = Path("here")
    items: tuple[Line, ...] = ()


class Address(pydantic.BaseModel):
    street: str
    since: date | None = None
    labels: set[str] = set()
    inner: list[Address] = []


class Options(TypedDict):
    when: datetime
    limit: NotRequired[Decimal]


class Point(NamedTuple):
    x: Decimal
    y: Decimal = Decimal(0)


class Pair(NamedTuple, Generic[Item]):
    first: Item
    more: list[Pair[Item]]


class Money:
    """Of another library: nothing says how it is kept."""

    def __init__(self, amount: str, currency: str) -> None:
        self.amount, self.currency = Decimal(amount), currency

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Money) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self.amount, self.currency))


register(Money, lambda money: f"{money.amount} {money.currency}", lambda text: Money(*text.split()))

OrderDay = NewType("OrderDay", date)
NOON = datetime(2026, 1, 31, 12, 0, 0, 250, tzinfo=UTC)
DAY = date(2026, 1, 31)
LINE = Line("book", Decimal("12.50"))
ID = UUID("8f3a2b11-0000-4000-8000-000000000001")
ORDER = Order(ID, NOON, [LINE], {"new", "gift", "big"}, {DAY: 3}, colour=Colour.TWO)


class Row(NamedTuple):
    """A type and a value of it."""

    annotation: Any
    value: Any
    keys: bool = False
    """It has keys that are no strings, so that without an annotation it is refused."""


ROWS: dict[str, Row] = {
    "int": Row(int, 3),
    "float": Row(float, 2.5),
    "str": Row(str, "ü"),
    "bool": Row(bool, True),
    "None": Row(None, None),
    "dict": Row(dict[str, Any], {"a": [1, None]}),
    "datetime": Row(datetime, NOON),
    "datetime-elsewhere": Row(datetime, NOON.astimezone(timezone(timedelta(hours=5, minutes=30)))),
    "datetime-naive": Row(datetime, datetime(2026, 1, 31)),
    "date": Row(date, DAY),
    "time": Row(time, time(12, 30, tzinfo=UTC)),
    "timedelta": Row(timedelta, timedelta(days=-3, microseconds=7)),
    "Decimal": Row(Decimal, Decimal("0.10")),
    "UUID": Row(UUID, ID),
    "Path": Row(Path, Path("a/b.txt")),
    "PurePath": Row(PurePosixPath, PurePosixPath("/a")),
    "bytes": Row(bytes, b"\x00\xff"),
    "Enum": Row(Colour, Colour.TWO),
    "IntEnum": Row(Size, Size.LARGE),
    "StrEnum": Row(Letter, Letter.B),
    "Flag": Row(Rights, Rights.READ | Rights.WRITE),
    "Literal-enum": Row(Literal[Letter.A, Letter.B], Letter.A),
    "list": Row(list[date], [DAY]),
    "sequence": Row(collections.abc.Sequence[Decimal], [Decimal(1)]),
    "tuple": Row(tuple[int, date, str], (1, DAY, "a")),
    "tuple-any-length": Row(tuple[Decimal, ...], (Decimal(1), Decimal(2))),
    "tuple-bare": Row(tuple, (1, 2)),
    "set": Row(set[str], {"c", "a", "b"}),
    "set-of-tuples": Row(set[tuple[int, str]], {(2, "a"), (1, "b"), (10, "c")}),
    "frozenset-of-dataclasses": Row(frozenset[Line], frozenset({LINE, Line("pen", Decimal(1))})),
    "set-of-enums": Row(set[Colour], {Colour.RED, Colour.TWO}),
    "dict-of-dates": Row(dict[str, date], {"first": DAY}),
    "int-keys": Row(dict[int, date], {1: DAY, 10: DAY}, keys=True),
    "date-keys": Row(dict[date, list[Line]], {DAY: [LINE]}, keys=True),
    "enum-keys": Row(dict[Colour, int], {Colour.RED: 1, Colour.TWO: 2}, keys=True),
    "uuid-keys": Row(dict[UUID, int], {ID: 1}, keys=True),
    "bool-keys": Row(dict[bool, int], {True: 1, False: 0}, keys=True),
    "dataclass": Row(Order, ORDER),
    "generic": Row(Page[Line], Page([LINE], Page([]))),
    "generic-base": Row(Days, Days([DAY], title="January")),
    "recursive": Row(Tree, Tree(Decimal(1), [Tree(Decimal(2), [Tree(Decimal(3))])])),
    "attrs": Row(Parcel, Parcel(2.5, Path("there"), (LINE,))),
    "pydantic": Row(Address, Address(street="x", since=DAY, labels={"b", "a"}, inner=[Address(street="y")])),
    "TypedDict": Row(Options, {"when": NOON}),
    "TypedDict-more": Row(Options, {"when": NOON, "limit": Decimal(1)}),
    "NamedTuple": Row(Point, Point(Decimal(1), Decimal("2.5"))),
    "NamedTuple-generic": Row(Pair[date], Pair(DAY, [Pair(DAY, [])])),
    "registered": Row(Money, Money("1.20", "EUR")),
    "list-of-registered": Row(list[Money | None], [Money("1.20", "EUR"), None]),
    "Optional": Row(Optional[Order], ORDER),  # noqa: UP045
    "Optional-None": Row(Order | None, None),
    "Optional-keys": Row(dict[int, date] | None, {1: DAY}, keys=True),
    "union-text-or-number": Row(Decimal | int, Decimal("1.0")),
    "union-number": Row(Path | float, 2.5),
    "union-of-classes": Row(Card | Bank, Bank("DE00")),
    "union-by-literal": Row(Paid | Refused, Refused("refused", NOON)),
    "union-of-kinds": Row(Address | Bank | Point | date | None, Point(Decimal(3))),
    "union-inside": Row(Payment, Payment(Card("1", DAY), {"a": [Bank("b"), Card("2", DAY)]})),
    "NewType": Row(OrderDay, DAY),
    "Annotated": Row(Annotated[Decimal, "positive"], Decimal(5)),
}


def expect(name: str, found: Any) -> Any:
    """What a body was given is the value of the row, of the very type."""
    value = ROWS[name].value
    assert found == value, found
    assert type(found) is type(value), type(found)
    return found


def _made(name: str, row: Row, *, annotated: bool) -> type[Workflow]:
    """A workflow that takes a value as input, parameter and state, in a thread, on the loop and in a process."""

    def give(self: Any) -> Any:
        return expect(name, self.value)

    async def take(self: Any, give: Any) -> Any:
        if annotated:
            expect(name, give)
        return Delta(give, kept=give) if annotated else give

    def look(self: Any, take: Any, state: Any) -> Any:
        assert (state.kept if annotated else None) == (take if annotated else None)
        return expect(name, take)

    title = f"{'Typed' if annotated else 'Untyped'}_{name.replace('-', '_')}"
    if annotated:
        give.__annotations__["return"] = row.annotation
        take.__annotations__ |= {"give": row.annotation, "return": Delta[row.annotation]}
    look.__annotations__ |= {"take": row.annotation, "return": row.annotation}
    state = type("State", (), {"__annotations__": {"kept": row.annotation}, "kept": row.value, "__module__": __name__})
    body = {
        "__annotations__": {"value": row.annotation},
        "__module__": __name__,
        "State": state,
        "give": step(side_effects="pure")(give),
        "take": step(side_effects="pure")(take),
        "look": step(side_effects="pure", isolation="process")(look),
    }
    for part in (give, take, look):
        part.__qualname__ = f"{title}.{part.__name__}"
    return type(Workflow)(title, (Workflow,), body)


TYPED = {name: _made(name, row, annotated=True) for name, row in ROWS.items()}
UNTYPED = {name: _made(name, row, annotated=False) for name, row in ROWS.items()}
globals().update({cls.__name__: cls for cls in [*TYPED.values(), *UNTYPED.values()]})
