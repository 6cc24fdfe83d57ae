"""Steps form a chain, and a step can be put anywhere in it."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stepwell.core.graph import Graph
from stepwell.define import Workflow, step
from stepwell.define.classes.compile import StepPlacement, in_order


def chain(graph: Graph) -> list[str]:
    """The nodes of a graph that is one line, from first to last."""
    assert all(len(spec.depends_on) <= 1 for spec in graph)
    (first,) = [spec.id for spec in graph if not spec.depends_on]
    found = [first]
    while following := graph.dependents(found[-1]):
        (one,) = following
        found.append(one)
    assert len(found) == len(graph)
    return [str(name) for name in found]


def test_each_step_depends_on_the_one_before_it() -> None:
    class Order(Workflow):
        @step
        def validate(self) -> None: ...
        @step()
        def charge(self) -> None: ...
        @step
        def ship(self) -> None: ...

    assert chain(Order.workflow_graph()) == ["validate", "charge", "ship"]


def test_an_inserted_step_stands_between() -> None:
    class Order(Workflow):
        @step
        def validate(self) -> None: ...
        @step
        def ship(self) -> None: ...
        @step(after_step=validate)
        def audit(self) -> None: ...
        @step(before_step="ship")
        def charge(self) -> None: ...

    assert chain(Order.workflow_graph()) == ["validate", "audit", "charge", "ship"]


def test_a_step_inserted_at_the_head_is_the_entry_point() -> None:
    class Order(Workflow):
        @step
        def validate(self) -> None: ...
        @step
        def ship(self) -> None: ...
        @step(before_step=validate)
        def receive(self) -> None: ...

    assert chain(Order.workflow_graph()) == ["receive", "validate", "ship"]
    assert Order.workflow_graph().nodes["receive"].depends_on == ()


def test_a_step_inserted_after_the_last_one_is_followed_by_what_is_written_below() -> None:
    class Order(Workflow):
        @step
        def validate(self) -> None: ...
        @step(after_step=validate)
        def audit(self) -> None: ...
        @step
        def ship(self) -> None: ...

    assert chain(Order.workflow_graph()) == ["validate", "audit", "ship"]


def test_steps_inserted_at_one_place_keep_the_order_of_writing() -> None:
    class Order(Workflow):
        @step
        def validate(self) -> None: ...
        @step
        def ship(self) -> None: ...
        @step(after_step=validate)
        def audit(self) -> None: ...
        @step(after_step=audit)
        def sign(self) -> None: ...
        @step(after_step=validate)
        def enrich(self) -> None: ...
        @step(before_step=ship)
        def pack(self) -> None: ...
        @step(before_step=ship)
        def label(self) -> None: ...

    assert chain(Order.workflow_graph()) == ["validate", "audit", "sign", "enrich", "pack", "label", "ship"]


def test_a_step_can_be_put_next_to_one_that_is_written_later() -> None:
    class Order(Workflow):
        @step(after_step="validate")
        def audit(self) -> None: ...
        @step
        def validate(self) -> None: ...
        @step
        def ship(self) -> None: ...

    assert chain(Order.workflow_graph()) == ["validate", "audit", "ship"]


def test_nodes_are_declared_in_the_order_of_writing() -> None:
    class Order(Workflow):
        @step
        def validate(self) -> None: ...
        @step(before_step=validate)
        def receive(self) -> None: ...

    assert [spec.id for spec in Order.workflow_graph()] == ["validate", "receive"]


def test_a_very_long_chain_of_insertions_compiles() -> None:
    links = [StepPlacement("0"), *(StepPlacement(str(i), after=str(i - 1)) for i in range(1, 5_000))]
    assert in_order(links) == [str(i) for i in range(5_000)]


@st.composite
def insertions(draw: st.DrawFn) -> list[StepPlacement]:
    links: list[StepPlacement] = []
    for number in range(draw(st.integers(1, 12))):
        known = [link.name for link in links]
        where = draw(st.sampled_from(["end", "before", "after"])) if known else "end"
        anchor = draw(st.sampled_from(known)) if where != "end" else None
        links.append(
            StepPlacement(f"s{number}", anchor if where == "before" else None, anchor if where == "after" else None)
        )
    return links


def naive(links: list[StepPlacement]) -> list[str]:
    """The chain as a list into which one step after the other is put.

    A step goes directly before its place, or after it and all that was put after it so far, with what belongs to those.
    """
    found: list[str] = []
    owner = {link.name: link.before or link.after for link in links}
    follows = {link.name for link in links if link.after}

    def belongs_behind(name: str | None, anchor: str) -> bool:
        while name is not None:
            if owner[name] == anchor and name in follows:
                return True
            name = owner[name]
        return False

    for link in links:
        if link.before is not None:
            found.insert(found.index(link.before), link.name)
        elif link.after is not None:
            at = found.index(link.after) + 1
            while at < len(found) and belongs_behind(found[at], link.after):
                at += 1
            found.insert(at, link.name)
        else:
            found.append(link.name)
    return found


@given(insertions())
def test_any_insertions_give_the_chain_of_the_naive_model(links: list[StepPlacement]) -> None:
    body: dict[str, Any] = {}
    for link in links:

        def method(self: Any) -> None: ...

        body[link.name] = step(before_step=link.before, after_step=link.after)(method)
    built = type(Workflow)("Built", (Workflow,), body)
    assert chain(built.workflow_graph()) == naive(links)
