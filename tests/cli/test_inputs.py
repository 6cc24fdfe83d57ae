"""What is typed after --input becomes what the workflow asks for, or is refused with everything that is wrong."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from stepwell.base.types.shapes import shape_of
from stepwell.cli.inputs import coerced
from tests.cli.conftest import Shop


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        (int, "7", 7),
        (int, "-7", -7),
        (int, "7.5", "7.5"),
        (int, "seven", "seven"),
        (int, "true", "true"),
        (float, "7.5", 7.5),
        (float, "7", 7),
        (float, "1e3", 1000.0),
        (float, "nan", "nan"),
        (bool, "true", True),
        (bool, "Yes", True),
        (bool, "1", True),
        (bool, "off", False),
        (bool, "0", False),
        (bool, "maybe", "maybe"),
        (str, "7", "7"),
        (str, "true", "true"),
        (str, "null", "null"),
        (str, '"quoted"', '"quoted"'),
        (str, "", ""),
        (str, "a=b", "a=b"),
        (list[int], "[1, 2]", [1, 2]),
        (list[str], '["1"]', ["1"]),
        (list[str], "[1]", [1]),  # so that the error names the item
        (dict[str, int], '{"a": 1}', {"a": 1}),
        (int | None, "null", None),
        (int | None, "7", 7),
        (str | None, "null", "null"),
        (int | str, "7", 7),
        (int | str, "seven", "seven"),
        (Literal["a", "b"], "a", "a"),
        (Literal[1, 2], "2", 2),
        (Literal["1"], "1", "1"),
        (Any, "7", 7),
        (Any, "word", "word"),
        (Any, "[7]", [7]),
    ],
)
def test_a_text_becomes_what_the_annotation_asks_for(annotation: Any, text: str, value: Any) -> None:
    found = coerced(text, shape_of(annotation))
    assert (found, type(found)) == (value, type(value))


def test_every_kind_of_input_arrives(shop: Shop) -> None:
    given = ["order_id=7", "express=yes", "factor=2.5", "note=7", 'tags=["a", "b"]', 'address={"city": "Köln"}']
    ended = shop("run", "shop:Order", *[word for pair in given for word in ("--input", pair)])
    assert ended.json["shipped"] == {
        "order_id": 7,
        "express": True,
        "factor": 2.5,
        "note": "7",
        "tags": ["a", "b"],
        "address": {"city": "Köln"},
    }
    assert "Köln" in ended.out


def test_all_problems_are_told_at_once_and_nothing_is_stored(shop: Shop) -> None:
    given = ["order_id=seven", "express=maybe", "nonsense=1", "no-equals-sign", "factor=1", "factor=2"]
    refused = shop("run", "shop:Order", *[word for pair in given for word in ("-i", pair)], code=2)
    for problem in (
        "--input 'no-equals-sign': expected NAME=VALUE",
        "--input factor: it is given twice",
        "order_id: expected int, got 'seven' (str)",
        "express: expected bool, got 'maybe' (str)",
        "nonsense: there is no such input; there are order_id,",
    ):
        assert problem in refused.err
    assert not (shop.folder / ".stepwell").exists()


def test_a_missing_input_is_named_with_its_type(shop: Shop) -> None:
    assert "order_id: this input is missing, expected int" in shop("run", "shop:Order", code=2).err


def test_the_parameters_of_a_function_are_its_inputs(shop: Shop) -> None:
    refused = shop("run", "shop:fan", "-i", "width=wide", "-i", "depth=3", code=2)
    assert "width: expected int, got 'wide' (str)" in refused.err
    assert "depth: there is no such input; there are width, join" in refused.err
    assert "width: this input is missing, expected int" in shop("run", "shop:raising", code=2).err


def test_an_input_that_begins_as_json_and_is_none_says_where_it_ends_to_be(shop: Shop) -> None:
    refused = shop("run", "shop:Order", "-i", "order_id=7", "-i", "address={'street': 3}", code=2).err
    assert (
        "--input address: it is not JSON: Expecting property name enclosed in double quotes at character 2" in refused
    )
    assert shop("run", "shop:Order", "-i", "order_id=7", "-i", "note=[draft").json["shipped"]["note"] == "[draft"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "it cannot be read"),
        ("{", "it is not JSON"),
        ("[1]", "expected a JSON object, got"),
        ('{"order_id": "7"}', "order_id: expected int, got '7' (str)"),
    ],
)
def test_an_input_file_that_is_wrong_is_refused(shop: Shop, content: str | None, problem: str) -> None:
    if content is not None:
        shop.write("order.json", content)
    assert problem in shop("run", "shop:Order", "--input-file", "order.json", code=2).err
