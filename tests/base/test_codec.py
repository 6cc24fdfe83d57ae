"""Canonical JSON: one value, one text; what JSON would change or refuse is refused, and the place is named."""

import enum
import math
import subprocess
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.base.codec import MAX_DEPTH, check, clean, decode, encode, encode_checked, read_back, sha256, text
from stepwell.errors import NotJson

values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(values)
def test_what_is_encoded_comes_back(value: Any) -> None:
    data = encode(value)
    assert decode(data) == value
    assert encode(decode(data)) == data
    assert encode_checked(value) == data
    assert text(value).encode() == data
    assert read_back(text(value)) == value


@given(st.dictionaries(st.text(), st.integers()), st.randoms())
def test_the_order_of_keys_does_not_matter(value: dict[str, int], random: Any) -> None:
    items = list(value.items())
    random.shuffle(items)
    assert encode(dict(items)) == encode(value)


def test_the_text_is_as_short_as_it_can_be() -> None:
    assert (
        encode({"b": [1, 2.5, "ü"], "a": {"y": None, "x": True}}) == b'{"a":{"x":true,"y":null},"b":[1,2.5,"\xc3\xbc"]}'
    )
    assert encode(None) == b"null"
    assert encode("") == b'""'
    assert encode({}) == b"{}"


def test_the_text_is_the_same_in_every_process() -> None:
    code = (
        "from stepwell.base.codec import encode, sha256; print(sha256(encode({k: {k, }.pop() for k in 'qwertzuiop'})))"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert seen == {sha256(encode({k: k for k in "qwertzuiop"})).encode() + b"\n"}


class Colour(enum.StrEnum):
    RED = "red"


class Point(NamedTuple):
    x: int
    y: int


def test_what_json_knows_under_another_name_is_kept_as_json() -> None:
    assert decode(encode({Colour.RED: Colour.RED, "p": Point(1, 2), "t": (1, (2,))})) == {
        "red": "red",
        "p": [1, 2],
        "t": [1, [2]],
    }


@pytest.mark.parametrize(
    ("value", "path", "says"),
    [
        (math.nan, "$", "nan is not a JSON number"),
        ([1, -math.inf], "$[1]", "-inf is not a JSON number"),
        ({"a": {"b": [0, {"c": math.inf}]}}, "$.a.b[1].c", "inf is not a JSON number"),
        ({1: "x"}, "$", "the key 1 is not a string"),
        ({"a": [{None: 1}]}, "$.a[0]", "the key None is not a string"),
        ({True: 1}, "$", "the key True is not a string"),
        ({"when": object()}, "$.when", "a value of type builtins.object cannot be kept"),
        ([{1, 2}], "$[0]", "a value of type builtins.set cannot be kept"),
        (b"bytes", "$", "a value of type builtins.bytes cannot be kept"),
        (1j, "$", "a value of type builtins.complex cannot be kept"),
    ],
)
def test_what_json_would_change_or_refuse_is_refused_with_its_place(value: object, path: str, says: str) -> None:
    for refuse in (encode, check):
        with pytest.raises(NotJson) as caught:
            refuse(value)
        assert caught.value.path == path
        assert says in str(caught.value)


@pytest.mark.parametrize("write", [encode, text])
def test_half_a_surrogate_pair_is_refused(write: Callable[[object], object]) -> None:
    for value in ("\ud800", {"\udfff": 1}, ["ok", "\ud800"]):
        with pytest.raises(NotJson, match="surrogate"):
            write(value)


@pytest.mark.parametrize("write", [encode, text])
def test_a_number_too_long_to_write_is_refused(write: Callable[[object], object]) -> None:
    for value in (10**5_000, [10**5_000]):
        with pytest.raises(NotJson):
            write(value)


def test_words_that_no_file_can_carry_are_made_readable() -> None:
    assert clean("plain, grün") == "plain, grün"
    assert clean("half \ud800") == "half \\ud800"


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


def test_depth_is_limited() -> None:
    assert decode(encode(nested(MAX_DEPTH))) == nested(MAX_DEPTH)
    with pytest.raises(NotJson, match=f"nested deeper than {MAX_DEPTH} levels"):
        encode(nested(MAX_DEPTH + 2))


def test_what_contains_itself_is_refused() -> None:
    value: dict[str, object] = {"a": 1}
    value["self"] = [value]
    with pytest.raises(NotJson, match="or containing itself") as caught:
        encode(value)
    assert caught.value.path.startswith("$.self[0].self")
    assert len(caught.value.path) < 100


def test_a_hash_is_hexadecimal() -> None:
    assert sha256(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
