"""The input of a workflow is checked when an instance is made, and everything wrong is said at once."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, NewType, Optional, Union

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.base import codec
from stepwell.base.types.shapes import shape_of
from stepwell.define import Workflow, step
from stepwell.errors import DefinitionError, InputError
from tests.define.lines import place

OrderId = NewType("OrderId", int)


class Order(Workflow):  # order
    order_id: int
    amount: float
    note: str | None = None
    lines: list[dict[str, int]] = []  # noqa: RUF012
    LIMIT: ClassVar[int] = 3

    @step
    def validate(self) -> None: ...


def test_inputs_are_attributes_and_defaults_are_filled_in() -> None:
    order = Order(order_id=7, amount=3)
    assert (order.order_id, order.amount, order.note, order.lines) == (7, 3, None, [])
    assert order.workflow_input() == {"order_id": 7, "amount": 3, "note": None, "lines": []}
    assert repr(order) == "Order(order_id=7, amount=3, note=None, lines=[])"


def test_everything_wrong_is_said_at_once() -> None:
    with pytest.raises(InputError) as caught:
        Order(order_id="7", note=3, lines=[{"sku": 1}, {"sku": "x"}, 4], colour="red", LIMIT=4)
    assert str(caught.value) == (
        "Order refuses its input:\n"
        "  - colour: there is no such input; there are order_id, amount, note, lines\n"
        "  - LIMIT: there is no such input; there are order_id, amount, note, lines\n"
        "  - order_id: expected int, got '7' (str)\n"
        "  - amount: this input is missing, expected float\n"
        "  - note: expected str or None, got 3 (int)\n"
        "  - lines[1]['sku']: expected int, got 'x' (str)\n"
        "  - lines[2]: expected dict[str, int], got 4 (int)\n"
        f"  defined at {place(__file__, 'order')}"
    )


def test_inputs_are_given_by_name() -> None:
    with pytest.raises(
        InputError, match=r"by name, for example Order\(order_id=..., amount=..., note=..., lines=...\)"
    ):
        Order(7, 3.0)


def test_a_workflow_without_inputs_takes_none() -> None:
    class Nightly(Workflow):
        @step
        def work(self) -> None: ...

    assert Nightly().workflow_input() == {}
    with pytest.raises(InputError, match="this workflow takes none"):
        Nightly(day=3)


@pytest.mark.parametrize(
    ("annotation", "right", "wrong"),
    [
        (int, [0, -3, 10**30], [1.0, "1", None, True, [1]]),
        (float, [0.5, 3], ["1", None, False, float("nan"), float("inf")]),
        (str, ["", "é"], [1, None, b"x"]),
        (bool, [True, False], [0, 1, "yes", None]),
        (None, [None], [0, "", False]),
        (list, [[], [1, "a"], (1, 2)], ["ab", {}, None, 3]),
        (list[int], [[], [1], (2,)], [["a"], [1, None]]),
        (list[list[str]], [[], [[]], [["a"], []]], [["a"], [[1]]]),
        (Sequence[int], [[1], (1,)], ["1", [None]]),
        (dict, [{}, {"a": [1]}], [[], {1: 2}, None]),
        (dict[str, int], [{}, {"a": 1}], [{"a": "b"}, {1: 1}]),
        (Mapping[str, Any], [{"a": None}], [[], 3]),
        (Optional[int], [None, 3], ["3", 0.5]),  # noqa: UP045
        (Union[int, str], [3, "3"], [None, 0.5, [3]]),  # noqa: UP007
        (int | None | list[str], [None, 3, ["a"]], ["a", [3]]),
        (Literal["fast", "slow"], ["fast"], ["medium", None, 1]),
        (Literal[1, None], [1, None], [True, 1.0, 2, "1"]),
        (Any, [None, 1, "a", [1, {"b": None}]], [datetime.date(2026, 1, 1), {1: 2}, [b"x"], float("nan")]),
        (object, [None, 1, "a"], [print]),
        (OrderId, [3], ["3"]),
        (Annotated[int, "positive"], [3], ["3"]),
    ],
)
def test_values_are_held_against_their_annotation(annotation: Any, right: list[Any], wrong: list[Any]) -> None:
    built = type(Workflow)("Built", (Workflow,), {"__annotations__": {"value": annotation}})
    for value in right:
        assert built(value=value).workflow_input() == codec.decode(codec.encode({"value": value}))
    for value in wrong:
        with pytest.raises(InputError, match="value"):
            built(value=value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=6,
)


@given(JSON)
def test_json_has_the_shape_of_the_union_of_all_json(value: Any) -> None:
    everything = shape_of(None | bool | int | float | str | list[Any] | dict[str, Any])
    assert not everything.problems(value, "value")


@pytest.mark.parametrize(
    "annotation",
    [
        complex,
        range,
        dict[tuple[int, int], str],
        Literal[b"x"],
        Order,
        list[complex],
        datetime.date | str,
        int | set[range],
    ],
)
def test_annotations_that_json_cannot_keep_are_refused_when_the_class_is_written(annotation: Any) -> None:
    with pytest.raises(DefinitionError, match="value: an input cannot be"):
        type(Workflow)("Built", (Workflow,), {"__annotations__": {"value": annotation}})


def test_all_wrong_annotations_and_defaults_are_said_at_once_with_the_line_of_the_class() -> None:
    with pytest.raises(DefinitionError) as caught:

        class Wrong(Workflow):  # wrong
            day: complex
            count: int = "three"

    assert "day: an input cannot be complex: it is kept as JSON" in str(caught.value)
    assert "count: its default: expected int, got 'three' (str)" in str(caught.value)
    assert caught.value.where == place(__file__, "wrong")


def test_an_annotation_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(DefinitionError, match=r"Wrong: an annotation cannot be read .*'Nowhere'"):

        class Wrong(Workflow):
            day: Nowhere  # noqa: F821


def test_a_name_of_the_class_machinery_is_a_fine_input() -> None:
    class Cash(Workflow):
        register: str

        @step
        def work(self) -> None: ...

    with pytest.raises(InputError, match="register: this input is missing"):
        Cash()
    assert Cash(register="left").register == "left"


def test_mutable_values_and_defaults_are_not_shared() -> None:
    lines = [{"sku": 1}]
    first = Order(order_id=1, amount=1, lines=lines)
    lines[0]["sku"] = 2
    assert first.lines == [{"sku": 1}]
    first.workflow_input()["lines"].clear()
    assert first.lines == [{"sku": 1}]
    Order(order_id=1, amount=1).lines.append({"sku": 9})
    assert Order(order_id=1, amount=1).lines == []


def test_a_class_with_its_own_init_is_refused() -> None:
    with pytest.raises(DefinitionError, match="annotate the class instead"):

        class Wrong(Workflow):
            def __init__(self) -> None: ...


def test_the_base_itself_has_no_instances() -> None:
    with pytest.raises(TypeError, match="Workflow is a base"):
        Workflow()
    with pytest.raises(DefinitionError, match="Workflow has no steps"):
        Workflow.workflow_graph()
