"""Patterns of users: what they match is what Python's `re` would match, in linear time."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell.base.matching import MAX_PATTERN, PatternError, compiled

PIECES = [
    *("a", "b", ".", "[ab]", "[^a]", "a*", "b+", "a?", "(a|b)", "(?:ab)*", "a{2}", "^", "$", r"\A", r"\Z", r"\u0061"),
    *(r"\.", r"\\", r"\d", "x|", r"\x62"),
]


@given(st.lists(st.sampled_from(PIECES), max_size=5).map("".join), st.text("ab.\\1Zuz", max_size=6))
def test_a_pattern_matches_what_it_matches_in_python(pattern: str, text: str) -> None:
    try:
        expected = re.compile(pattern)
    except re.error:
        return  # `a**`, which RE2 takes or not
    try:
        matcher = compiled(pattern)
    except PatternError:
        return
    assert matcher.groups == expected.groups
    for found, known in ((matcher.search(text), expected.search(text)), (matcher.match(text), expected.match(text))):
        assert (found is None) == (known is None)
        assert found is None or found.span() == known.span()


def test_a_pattern_has_a_longest_length_and_a_largest_size() -> None:
    assert compiled("|" * MAX_PATTERN).search("") is not None
    with pytest.raises(PatternError, match=r"it has 10,001 characters; at most 10,000 are allowed"):
        compiled("|" * (MAX_PATTERN + 1))
    with pytest.raises(PatternError, match="it is too large"):
        compiled(r"\p{L}{20}")


def test_half_of_a_surrogate_pair_is_in_no_pattern_and_matches_none() -> None:
    with pytest.raises(PatternError, match="half of a surrogate pair"):
        compiled("\ud800")
    assert compiled("a").search("a\ud800") is None
    assert compiled("a").match("a\ud800") is None


@pytest.mark.parametrize("pattern", ["(?=a)", "(?<!a)b", r"(a)\1", "(?P=x)"])
def test_what_takes_more_than_linear_time_is_told(pattern: str) -> None:
    with pytest.raises(PatternError, match="matched in linear time, without lookaround and references"):
        compiled(pattern)
