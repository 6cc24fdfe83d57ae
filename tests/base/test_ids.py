"""Ids: ordered by time, beyond guessing, and split only where we joined them."""

import os
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.base.ids import (
    attempt_id,
    checked_run_id,
    new_claim_id,
    new_gate_token,
    new_run_id,
    new_worker_id,
    split_attempt_id,
    time_ordered,
)
from stepwell.errors import InputError


def test_later_ids_sort_later() -> None:
    made = []
    for _ in range(20):
        made.append(time_ordered())
        time.sleep(0.0015)
    assert made == sorted(made)


def test_ids_are_never_the_same() -> None:
    made = [make() for make in (new_run_id, new_claim_id, new_worker_id, new_gate_token) for _ in range(2_000)]
    assert len(set(made)) == len(made)
    assert new_gate_token().endswith(f":{os.getpid()}"), "whose it is can be told"
    made = [one.partition("@")[0] for one in made]
    assert {len(one) for one in made} == {32}
    assert all(set(one) <= set("0123456789abcdef") for one in made)


@given(st.text(st.characters(exclude_characters="."), min_size=1), st.integers(0, 9_999))
def test_an_attempt_id_is_split_where_it_was_joined(claim: str, ordinal: int) -> None:
    assert split_attempt_id(attempt_id(claim, ordinal)) == (claim, ordinal)


@given(st.text(alphabet="0123456789.+- xc١\n_", max_size=12))
def test_what_is_split_is_exactly_what_was_joined_or_nothing(text: str) -> None:
    claim, ordinal = split_attempt_id(text)
    assert (claim, ordinal) == ("", 0) or attempt_id(claim, ordinal) == text


@pytest.mark.parametrize(
    "text",
    ["", ".", "c", "c.", ".0", "c.00", "c.01", "c.-1", "c.+1", "c. 1", "c.1 ", "c.1\n", "c.1.2", "c.10000", "c.١"],
)
def test_another_spelling_is_the_id_of_no_attempt(text: str) -> None:
    assert split_attempt_id(text) == ("", 0)


@pytest.mark.parametrize("text", ["r-1", "order:7", "A.b_c@d+e", "0", "x" * 200, "0199f2c3a1b2" + "0" * 20])
def test_a_run_id_people_can_live_with_is_taken(text: str) -> None:
    assert checked_run_id(text) == text


@pytest.mark.parametrize(
    "text", ["", "-r", ".hidden", "a/b", "a b", "a\n", "a\x00", "ü", "x" * 201, "../up", "$x", "a\\b", None, 7]
)
def test_a_run_id_that_would_make_trouble_is_refused_with_advice(text: str) -> None:
    with pytest.raises(InputError, match="use 1 to 200 letters, digits") as caught:
        checked_run_id(text)
    assert repr(text)[:80] in str(caught.value)
