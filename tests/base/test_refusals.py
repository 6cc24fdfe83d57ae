"""What pydantic refuses is said in the same words for documents, configs of handlers, typed data and requests."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from stepwell import InputError, Workflow, step
from stepwell.base.forms.problems import Problems
from stepwell.base.forms.reading import Form, read_form
from stepwell.base.forms.refusals import ModelRefusal, refusals
from stepwell.base.secret_refs import SecretRef
from stepwell.handlers import handler


def refused(annotation: Any, data: Any) -> list[ModelRefusal]:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(annotation).validate_python(data)
    return refusals(caught.value.errors(include_url=False), data)


@pytest.mark.parametrize(
    ("annotation", "value", "message"),
    [
        (str, 7, "expected text"),
        (int, "x", "expected a whole number"),
        (int, 1.5, "expected a whole number"),
        (int, [], "expected a whole number"),
        (float, "x", "expected a number"),
        (float, [], "expected a number"),
        (Annotated[float, Field(allow_inf_nan=False)], float("inf"), "expected a number that JSON has"),
        (bool, "x", "expected true or false"),
        (bool, [], "expected true or false"),
        (list[int], 7, "expected a list"),
        (tuple[int, int], 7, "expected a list"),
        (dict[str, int], 7, "expected an object"),
        (None, 7, "expected null"),
        (Literal["a", "b"], "c", "expected one of a, b"),
        (Annotated[str, Field(max_length=2)], "abc", "expected at most 2 characters"),
        (Annotated[str, Field(min_length=2)], "a", "expected at least 2 characters"),
        (Annotated[list[int], Field(max_length=1)], [1, 2], "expected at most 1 items"),
        (Annotated[list[int], Field(min_length=1)], [], "expected at least 1 items"),
        (Annotated[int, Field(gt=2)], 2, "expected more than 2"),
        (Annotated[int, Field(ge=2)], 1, "expected at least 2"),
        (Annotated[int, Field(lt=2)], 2, "expected less than 2"),
        (Annotated[int, Field(le=2)], 3, "expected at most 2"),
        (SecretRef, "DB", "expected secret:NAME"),
        (str | SecretRef, 7, "expected text or secret:NAME"),
        (str | SecretRef | None, 7, "expected text or secret:NAME"),
        (list[str] | bool | Literal["a"], 7, "expected a list or true or false or one of a"),
    ],
)
def test_every_refusal_says_what_was_expected(annotation: Any, value: Any, message: str) -> None:
    (refusal,) = refused(annotation, value)
    assert (refusal.place, refusal.message) == ((), message)
    assert refusal.expected == message.removeprefix("expected ")


def test_a_place_is_one_of_the_data_and_not_of_the_description() -> None:
    table = dict[str, list[str | SecretRef] | dict[str, int]]
    places = [each.place for each in refused(table, {"a": ["x", 7], "b": {"c": "x"}})]
    assert places == [("a", 1), ("a",), ("b",), ("b", "c")]
    assert [each.place for each in refused(dict[int, int], {"x": 1})] == [("x",)]
    assert [each.place for each in refused(tuple[int, int], [1])] == [(1,)]


class Point(BaseModel):
    model_config = {"extra": "forbid"}
    x: int
    y: int = 0


class PointForm(Form):
    x: int
    y: int = 0


class Draw(Workflow):
    point: Point

    @step
    def draw(self) -> None: ...


@handler("draw-point")
def draw_point(ctx: Any, config: Point) -> None: ...


def test_documents_configs_and_typed_inputs_say_the_same() -> None:
    data: Any = {"y": "down", "z": 1}
    problems = Problems()
    read_form(PointForm, data, problems)
    assert [str(each) for each in problems] == [
        "$: it needs its x",
        "$.y: expected a whole number, got 'down'",
        "$.z: it has no field 'z'; there are x, y",
    ]
    assert [str(each) for each in draw_point.check_config(data)] == [
        "$.z: unknown field; there are x, y",
        "$.x: this field is missing",
        "$.y: expected a whole number",
    ]
    with pytest.raises(InputError) as caught:
        Draw(point=data)
    assert str(caught.value).splitlines()[1:4] == [
        "  - point.x: this field is missing",
        "  - point.y: expected a whole number, got 'down' (str)",
        "  - point.z: unknown field",
    ]
