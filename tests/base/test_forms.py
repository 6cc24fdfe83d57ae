"""One reader for all forms: every problem, with its path, in the same words, and what is right is read all the same."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import pytest
from pydantic import Field, field_validator

from stepwell.base.clock import POSITIVE_SECONDS_NEEDED, SECONDS_NEEDED
from stepwell.base.forms.problems import Problem, Problems, TooManyProblems
from stepwell.base.forms.reading import Expected, Form, PositiveSeconds, Seconds, read_form


class Door(Form):
    noun = "a door"
    contents = "an object with a width"
    width: Annotated[int, Field(ge=1), Expected("a whole number of centimetres")]
    colour: Literal["red", "green"] = "red"


class House(Form):
    noun = "a house"
    other_names: ClassVar[dict[str, str]] = {"title": "name"}
    name: str
    key: Annotated[str, Field(pattern="^secret:"), Expected("a reference, secret:NAME", secret=True)] = "secret:KEY"
    heat: Seconds = 0.0
    wait: PositiveSeconds = 1.0
    rooms: Annotated[tuple[str, ...], Field(strict=False, max_length=2)] = ()
    door: Door | None = None
    doors: list[Door] = Field(default_factory=list)
    height: Annotated[int, Field(gt=0, le=9)] = 3
    old: bool = False

    @field_validator("name")
    @classmethod
    def _named(cls, name: str) -> str:
        if name == "tower":
            raise ValueError("a tower is not a house")
        return name


def read(data: Any) -> tuple[House | None, list[str]]:
    problems = Problems()
    house = read_form(House, data, problems, ("houses", 0))
    return house, list(map(str, problems))


def test_what_is_right_is_read_and_written_back_without_defaults() -> None:
    house, problems = read({"title": "hall", "heat": 2, "rooms": ["a"], "doors": [{"width": 3}], "wait": 1})
    assert problems == []
    assert house is not None
    assert (house.name, house.heat, house.rooms, house.doors[0].width) == ("hall", 2.0, ("a",), 3)
    assert house.written_fields == {"name": "hall", "heat": 2, "rooms": ("a",), "doors": [{"width": 3}]}


WRONG: list[tuple[Any, list[str]]] = [
    (7, ["$.houses[0]: expected an object, got 7"]),
    ({}, ["$.houses[0]: a house needs its name"]),
    ({"name": 7}, ["$.houses[0].name: expected text, got 7"]),
    ({"title": 7}, ["$.houses[0].title: expected text, got 7"]),
    ({"name": "a", "title": "b"}, ["$.houses[0].title: title means name, which is there already: say it once"]),
    ({"name": "a", "heta": 1}, ["$.houses[0].heta: a house has no field 'heta'; did you mean 'heat'?"]),
    ({"name": "tower"}, ["$.houses[0].name: a tower is not a house"]),
    ({"name": "a", "key": "hunter2"}, ["$.houses[0].key: expected a reference, secret:NAME"]),
    (
        {"name": "a", "heat": True},
        [f"$.houses[0].heat: expected {SECONDS_NEEDED}, got true"],
    ),
    (
        {"name": "a", "wait": 0},
        [f"$.houses[0].wait: expected {POSITIVE_SECONDS_NEEDED}, got 0"],
    ),
    ({"name": "a", "height": 0}, ["$.houses[0].height: expected more than 0, got 0"]),
    ({"name": "a", "height": 1.0}, ["$.houses[0].height: expected a whole number, got 1.0"]),
    ({"name": "a", "old": 1}, ["$.houses[0].old: expected true or false, got 1"]),
    ({"name": "a", "rooms": ["a", 7]}, ["$.houses[0].rooms[1]: expected text, got 7"]),
    ({"name": "a", "rooms": ["a", "b", "c"]}, ["$.houses[0].rooms: expected at most 2 items, got a list of 3"]),
    ({"name": "a", "door": 7}, ["$.houses[0].door: expected an object with a width, got 7"]),
    (
        {"name": "a", "door": {"width": "x"}},
        ["$.houses[0].door.width: expected a whole number of centimetres, got 'x'"],
    ),
    (
        {"name": "a", "doors": [{"width": 1}, {"widht": 1, "colour": "blue"}]},
        [
            "$.houses[0].doors[1]: a door needs its width",
            "$.houses[0].doors[1].colour: expected one of red, green, got 'blue'",
            "$.houses[0].doors[1].widht: a door has no field 'widht'; did you mean 'width'?",
        ],
    ),
]


@pytest.mark.parametrize(("data", "problems"), WRONG, ids=range(len(WRONG)))
def test_everything_that_is_wrong_is_reported_with_its_path(data: Any, problems: list[str]) -> None:
    assert read(data)[1] == problems


def test_the_rest_is_read_although_something_is_wrong() -> None:
    house, problems = read({"name": 7, "heat": 2, "doors": [{}]})
    assert len(problems) == 2
    assert isinstance(house, House)
    assert (house.name, house.heat, house.doors) == ("", 2.0, [])


def test_a_secret_is_in_no_part_of_a_problem() -> None:
    problems = Problems()
    read_form(House, {"name": "a", "key": "hunter2"}, problems)
    assert "hunter2" not in repr(problems)


def test_a_problem_has_its_facts_as_attributes() -> None:
    problems = Problems()
    read_form(House, {"name": "a", "heta": 1, "door": None, "old": None}, problems)
    old, heta = sorted(problems, key=lambda each: each.path, reverse=True)
    assert (old.path, old.found, old.expected) == ("$.old", "null", "true or false")
    assert heta.as_json() == {
        "path": "$.heta",
        "message": "a house has no field 'heta'; did you mean 'heat'?",
        "found": "'heta'",
        "nearest": "heat",
    }


def test_a_schema_for_editors_comes_from_the_same_description() -> None:
    schema = House.model_json_schema()
    assert schema["required"] == ["name"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["height"]["maximum"] == 9
    assert schema["$defs"]["Door"]["properties"]["width"]["minimum"] == 1


def test_problems_get_the_lines_of_a_text_and_its_order() -> None:
    class Marks:
        def at(self, path: tuple[str | int, ...]) -> tuple[int, int]:
            return (2, 1) if path == ("a",) else (1, 5)

    problems = Problems()
    problems.expected(("a",), "a number", "x")
    problems.add(("b",), "it is wrong")
    assert list(map(str, problems.placed(Marks()))) == [
        "$.b (line 1, column 5): it is wrong",
        "$.a (line 2, column 1): expected a number, got 'x'",
    ]


def test_the_search_ends_after_very_many_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    from stepwell.base.forms import problems as collecting

    monkeypatch.setattr(collecting, "MAX_PROBLEMS", 2)
    problems = Problems([("a",), ("b",), ("c",)])
    assert [each.place for each in problems] == [("a",), ("b",)]
    with pytest.raises(TooManyProblems):
        problems.add((), "one more")


def test_a_problem_below_a_name() -> None:
    assert Problem(("a", 0), "it is wrong").below("order") == "order.a[0]: it is wrong"
