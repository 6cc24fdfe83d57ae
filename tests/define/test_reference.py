"""Whatever a class says, the compiler and the naive model read it alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from stepwell.core.graph import Graph
from stepwell.errors import DefinitionError
from tests.define import reference
from tests.define.reference import PREVIOUS, Refused, Written
from tests.define.writing import GHOST, definitions, write

Classes = list[list[Written]]
quickly = settings(deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])


def accepted(classes: Classes) -> bool:
    try:
        return bool(reference.build(classes))
    except Refused:
        return False


@given(definitions(), st.randoms(use_true_random=False))
@settings(quickly, max_examples=200)
def test_the_compiler_agrees_with_the_naive_model(classes: Classes, random: Any) -> None:
    try:
        depends = reference.build(classes)
    except Refused as refusal:
        event(f"refused: {refusal}")
        with pytest.raises(DefinitionError):
            write(classes, random.choice)
        return
    event(f"accepted, {len(classes)} classes")
    assert_same(write(classes, random.choice).workflow_graph(), depends)


def assert_same(graph: Graph, depends: dict[str, list[str]]) -> None:
    assert {spec.id: list(spec.depends_on) for spec in graph} == depends
    assert [spec.id for spec in graph] == list(depends)
    assert list(graph.order) == reference.order(depends)


@given(classes=definitions().filter(accepted), random=st.randoms(use_true_random=False))
@settings(quickly, max_examples=50)
def test_any_node_decorated_anew_stands_where_the_model_says(classes: Classes, random: Any) -> None:
    node = random.choice(list(reference.build(classes)))
    more = [*classes, [Written(node, "step")]]
    assume(accepted(more))
    assert_same(write(more, random.choice).workflow_graph(), reference.build(more))


a, b = "new_a", "new_b"

Mistake = Callable[[str], list[Written]]
"""What is written wrongly, in a class that has this node, or gets it in a subclass."""

MISTAKES: dict[str, tuple[str, Mistake]] = {
    "before and after at once": (
        "not both",
        lambda node: [Written(a, "step", None), Written(b, "step", before=a, after=a)],
    ),
    "before a step that is not there": ("that is no step", lambda node: [Written(a, "step", before=GHOST)]),
    "after a task": ("that is a task", lambda node: [Written(a, "task", None), Written(b, "step", after=a)]),
    "after itself": ("in a circle", lambda node: [Written(a, "step", after=a)]),
    "after each other": ("in a circle", lambda node: [Written(a, "step", after=b), Written(b, "step", before=a)]),
    "depends_on and also_depends_on": ("name everything there", lambda node: [Written(a, "step", (node,), (node,))]),
    "depends on what is not there": ("depends on 'ghost'", lambda node: [Written(a, "task", (a, GHOST))]),
    "also depends on what is not there": (
        "depends on 'ghost'",
        lambda node: [Written(a, "step", also_depends_on=(GHOST,))],
    ),
    "depends on itself": ("a cycle: new_a -> new_a", lambda node: [Written(a, "task", (a,))]),
    "a cycle": ("a cycle", lambda node: [Written(a, "step", (b,)), Written(b, "step")]),
    "a task that says nothing": ("a task is not in the chain", lambda node: [Written(a, "task")]),
    "a task after the previous one": ("a task is not in the chain", lambda node: [Written(a, "task", (PREVIOUS,))]),
    "a step written twice": ("defined twice", lambda node: [Written(a, "step"), Written(a, "step")]),
    "a step and a task of one name": ("defined twice", lambda node: [Written(a, "step"), Written(a, "task", None)]),
    "a method over a step": ("defined twice", lambda node: [Written(a, "step"), Written(a, "method")]),
    "a step over a method": ("defined twice", lambda node: [Written(a, "method"), Written(a, "step")]),
    "a value over a step": ("defined twice", lambda node: [Written(a, "step"), Written(a, "value")]),
    "neither a method nor a job": (
        "decorates a method or names a job",
        lambda node: [Written(a, "step", body="nothing")],
    ),
    "the output of a stranger": (
        "takes the output of 'new_a', which is not one of its ancestors",
        lambda node: [Written(a, "task", None), Written(b, "task", None, parameters=(a,))],
    ),
    "its own output": ("takes the output of 'new_a'", lambda node: [Written(a, "step", parameters=(a,))]),
    "a parameter that means nothing": (
        "nothing fills its parameter 'ghost'",
        lambda node: [Written(a, "step", parameters=(GHOST,))],
    ),
    "a former name that it has now": ("that is its name now", lambda node: [Written(a, "step", was=(a,))]),
    "a former name that another node has now": (
        "a node has this name now",
        lambda node: [Written(a, "step", was=(node,))],
    ),
    "a former name that another node had too": (
        "says this too",
        lambda node: [Written(a, "step", was=(GHOST,)), Written(b, "step", was=(GHOST,))],
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
@given(classes=definitions().filter(accepted), random=st.randoms(use_true_random=False))
@settings(quickly, max_examples=8)
def test_a_mistake_anywhere_is_refused_by_both(mistake: str, classes: Classes, random: Any) -> None:
    """Planted into any of the classes, so that a base that is wrong is refused before it has subclasses."""
    message, write_wrongly = MISTAKES[mistake]
    node = random.choice(list(reference.build(classes)))
    position = random.randrange(len(classes))
    wrong = [[*body, *write_wrongly(node)] if at == position else body for at, body in enumerate(classes)]
    with pytest.raises(Refused):
        reference.build(wrong)
    with pytest.raises(DefinitionError, match=message):
        write(wrong, random.choice)


@given(classes=definitions().filter(accepted), random=st.randoms(use_true_random=False))
@settings(quickly, max_examples=20)
def test_something_else_in_the_place_of_an_inherited_node_is_refused_by_both(classes: Classes, random: Any) -> None:
    node = random.choice(list(reference.build(classes)))
    wrong = [*classes, [Written(node, "value")]]
    with pytest.raises(Refused):
        reference.build(wrong)
    with pytest.raises(DefinitionError, match=f"{node}: 7 takes the place of"):
        write(wrong, random.choice)


@given(classes=definitions().filter(accepted), random=st.randoms(use_true_random=False))
@settings(quickly, max_examples=20)
def test_a_subclass_leaves_its_base_as_it_was(classes: Classes, random: Any) -> None:
    made = write(classes, random.choice)
    bases = [cls for cls in reversed(made.__mro__) if cls.__name__.startswith("Class")]
    for count, base in enumerate(bases, start=1):
        depends = reference.build(classes[:count])
        if depends:
            assert {spec.id: list(spec.depends_on) for spec in base.workflow_graph()} == depends  # type: ignore[attr-defined]


@given(classes=definitions().filter(accepted), random=st.randoms(use_true_random=False))
@settings(quickly, max_examples=20)
def test_async_def_and_def_give_the_same_dependencies(classes: Classes, random: Any) -> None:
    turned = [[replace(each, body="async def") if each.body == "def" else each for each in body] for body in classes]
    first, second = write(classes, random.choice).workflow_graph(), write(turned, random.choice).workflow_graph()
    assert first.signature == second.signature
    assert first.order == second.order
