"""Workflows with a state, whose bodies take random time."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from typing import Annotated, Any, ClassVar

from stepwell import Builder, Context, Delta, Workflow, step, task
from stepwell.reducers import add, append, merge, union

chance = random.Random()
"""Not seeded: every run takes other times."""


def weave(current: str, new: str) -> str:
    """Every order of the same deltas gives another text."""
    return f"({current}{new})"


class Branches(Workflow):
    """12 nodes: a chain, two fans, joins, and a branch that goes past them."""

    class State:
        notes: Annotated[list[str], append]
        total: Annotated[float, add] = 0.0
        woven: Annotated[str, weave] = ""
        seen: Annotated[dict[str, int], merge]
        words: Annotated[list[str], union]
        winner: str = "nobody"

    def work(self, ctx: Context, **more: Any) -> Delta:
        time.sleep(chance.choice([0, 0, 0, 0.0005, 0.001, 0.002]))
        return self.told(ctx, **more)

    def told(self, ctx: Context, **more: Any) -> Delta:
        state, name = ctx.state, ctx.node_id
        return Delta(
            {"sees": state.notes, "woven": state.woven, "winner": state.winner},
            notes=name,
            total=0.1 * len(name),
            woven=name[0],
            seen={name: len(state.notes), "last": len(state.notes)},
            words=[name, "word"],
            winner=name,
            **more,
        )

    @step
    def begin(self, ctx: Context) -> Delta:
        return self.work(ctx)

    @step
    def split(self, ctx: Context) -> Delta:
        return self.work(ctx)

    @task(depends_on=split)
    def a(self, ctx: Context) -> Delta:
        return self.work(ctx)

    @task(depends_on=split)
    def b(self, ctx: Context) -> Delta:
        return self.work(ctx)

    @task(depends_on=split)
    async def c(self, ctx: Context) -> Delta:
        await asyncio.sleep(chance.choice([0, 0.001]))
        return self.told(ctx)

    @task(depends_on=split)
    def d(self) -> None:
        """It neither looks nor returns anything."""
        time.sleep(chance.choice([0, 0.001]))

    @task(depends_on=begin)
    def past(self, ctx: Context) -> Delta:
        return self.work(ctx)

    @task(depends_on=[a, b])
    def left(self, ctx: Context) -> Delta:
        return self.work(ctx)

    @task(depends_on=[b, c, d])
    async def right(self, ctx: Context) -> Delta:
        await asyncio.sleep(chance.choice([0, 0.001]))
        return self.told(ctx)

    @task(depends_on=left)
    def below_left(self, ctx: Context) -> Delta:
        return self.work(ctx)

    @task(depends_on=[right, past])
    def below_right(self, ctx: Context) -> Delta:
        return self.work(ctx)

    @step(depends_on=[below_left, below_right])
    def end(self, ctx: Context) -> Delta:
        return self.work(ctx)


finished = threading.Event()


class Siblings(Workflow):
    """`slow` looks at the state after `quick`, beside it, has completed."""

    class State:
        notes: Annotated[list[str], append]

    @task(depends_on=None)
    def quick(self) -> Delta:
        return Delta(notes="quick")

    @task(depends_on=None)
    def slow(self, ctx: Context) -> list[str]:
        assert finished.wait(30)
        notes: list[str] = ctx.state.notes
        return notes

    @task(depends_on=[quick, slow])
    def both(self, state: State) -> list[str]:
        return state.notes


class Counted:
    count: Annotated[int, add]
    notes: Annotated[list[int], append]


def count(number: int, state: Counted) -> Delta:
    assert state.count == number
    return Delta(count=1, notes=number)


def counting(length: int) -> Builder:
    w = Builder("counting", state=Counted)
    for number in range(length):
        w.node(f"node {number}", job=count, args={"number": number})
    return w


class Careless(Workflow):
    how: str

    class State:
        notes: Annotated[list[str], append]
        total: Annotated[int, add]

    @step
    def begin(self) -> Delta:
        return Delta(notes="begin")

    @step
    def spoil(self, state: Any) -> Any:
        if self.how == "in place":
            state.notes.append("lost")
        elif self.how == "assigned":
            state.total = 3
        elif self.how == "wrong":
            return Delta(totl=1, total="x")
        elif self.how == "not json":
            return Delta(1j, total=1)
        return None


class CarelessElsewhere(Careless, name="careless-elsewhere"):
    @step(isolation="process")
    def spoil(self, state: Any) -> Any:
        return Careless.spoil(self, state)


def fussy(current: int, new: int) -> int:
    if new > limits["highest"]:
        raise ValueError(f"{new} is too much")
    return current + new


limits = {"highest": 1}


class Fragile(Workflow):
    class State:
        total: Annotated[int, fussy] = 0

    @step
    def give(self) -> Delta:
        return Delta(total=2)

    @step
    def look(self, state: State) -> int:
        return state.total


class Sums(Workflow):
    """Each delta is a number that JSON can keep, and their sum is none."""

    class State:
        total: Annotated[float, add]
        count: Annotated[int, add]

    @step
    def first(self) -> Delta:
        return Delta(total=1e308, count=9 * 10**4_299)

    @step
    def second(self) -> Delta:
        return Delta(total=1e308)

    @step
    def look(self, state: State) -> int:
        return state.count


class LargeCount(Sums, name="large-count"):
    @step
    def second(self) -> Delta:
        return Delta(count=9 * 10**4_299)


def half(current: str, new: str) -> str:
    return current + new[0].encode("utf-16", "surrogatepass")[2:4].decode("utf-16", "surrogatepass")


class Halves(Workflow):
    """Its reducer gives half of a character."""

    class State:
        text: Annotated[str, half] = ""

    @step
    def give(self) -> Delta:
        return Delta(text="\U0001f600")

    @step
    def look(self, state: State) -> int:
        return len(state.text)


def paired(current: list[Any], new: int) -> Any:
    """Tuples in a tuple, each of which is there once, as people write it who do not think of JSON."""
    pair = (new, str(new))
    return (*current, pair) if pair not in current else current


class Pairs(Workflow):
    looks: bool

    class State:
        pairs: Annotated[list[list[Any]], paired] = []  # noqa: RUF012

    @step
    def first(self) -> Delta:
        return Delta(pairs=1)

    @step
    def second(self, ctx: Context) -> Delta:
        return Delta(ctx.state.pairs if self.looks else None, pairs=1)

    @step
    def third(self, ctx: Context) -> Delta:
        return Delta(ctx.state.pairs if self.looks else None, pairs=2)


class Again(Workflow):
    """Every attempt returns another delta, and what it saw."""

    fails: ClassVar[bool] = False

    class State:
        notes: Annotated[list[str], append]

    @step
    def begin(self, ctx: Context) -> Delta:
        return Delta(notes=f"begin {ctx.attempt}")

    @step
    def end(self, ctx: Context, state: State) -> Delta:
        if self.fails:
            raise ValueError("not yet")
        return Delta(notes=f"end {ctx.attempt} after {', '.join(state.notes)}")


class Handed(Again, on_failure="pause"):
    """The second step looks at the state before it fails."""

    @step
    def end(self, ctx: Context, state: Again.State) -> Delta:
        told = f"end {ctx.attempt} after {', '.join(state.notes)}"
        if self.fails:
            raise ValueError("not yet")
        return Delta(notes=told)


class Stateless(Workflow):
    how: str

    @step
    def begin(self, ctx: Context) -> Any:
        return ctx.state if self.how == "look" else Delta(total=1)
