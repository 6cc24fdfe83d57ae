"""A retry policy is refused when it is written wrongly, not when it is needed."""

from __future__ import annotations

import math

import pytest

from stepwell.errors import DefinitionError
from stepwell.graph import Retry


def test_a_number_is_short_for_a_policy() -> None:
    assert Retry.of(3) == Retry(max_attempts=3)
    assert Retry.of(None) is None
    assert Retry.of(Retry(2)) == Retry(2)


@pytest.mark.parametrize("attempts", [0, -1, True, 2.5, "3"])
def test_attempts_are_counted_from_one(attempts: int) -> None:
    with pytest.raises(DefinitionError, match="at least 1"):
        Retry(attempts)


@pytest.mark.parametrize("delay", [-1, math.nan, math.inf, 10**10])
def test_delays_are_seconds_that_pass(delay: float) -> None:
    with pytest.raises(DefinitionError, match="from 0 to 315,360,000"):
        Retry(3, base_delay=delay)
    with pytest.raises(DefinitionError, match="from 0 to 315,360,000"):
        Retry(3, max_delay=delay)


def test_exceptions_are_kept_by_name() -> None:
    assert Retry(3, retry_on=(ConnectionError, "shop.Busy")).names() == ("builtins.ConnectionError", "shop.Busy")
    assert Retry(3).names() is None


def test_a_single_exception_needs_no_tuple() -> None:
    assert Retry(3, retry_on=ConnectionError).names() == ("builtins.ConnectionError",)
    assert Retry(3, retry_on="shop.Busy").names() == ("shop.Busy",)


def test_only_exceptions_can_be_retried_on() -> None:
    with pytest.raises(DefinitionError, match="not an exception class"):
        Retry(3, retry_on=(int,))
