"""A retry policy is refused when it is written wrongly, not when it is needed."""

from __future__ import annotations

import math
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from stepwell.core.graph import Graph, Retry
from stepwell.errors import DefinitionError


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
    with pytest.raises(DefinitionError, match="positive number of seconds up to 315,360,000"):
        Retry(3, base_delay=delay)
    with pytest.raises(DefinitionError, match="from 0 to 315,360,000"):
        Retry(3, max_delay=delay)


def test_the_first_delay_is_not_nothing_and_the_longest_not_less_than_it() -> None:
    with pytest.raises(DefinitionError, match="base_delay=0"):
        Retry(3, base_delay=0)
    with pytest.raises(DefinitionError, match="max_delay cannot be less than base_delay"):
        Retry(3, base_delay=5, max_delay=4.9)
    with pytest.raises(DefinitionError, match=r"base_delay=120, max_delay=60\.0"):
        Retry(3, base_delay=120)
    assert Retry(3, base_delay=5, max_delay=5).delays() == (5, 5)


def test_delays_may_be_timedeltas() -> None:
    assert Retry(3, timedelta(seconds=2), timedelta(minutes=1)) == Retry(3, 2.0, 60.0)


def test_what_was_stored_when_delays_could_be_nothing_still_loads() -> None:
    (spec,) = Graph.load(b'[{"id":"a","retry":{"base_delay":0,"max_attempts":3,"max_delay":0}}]')
    assert spec.retry is not None
    assert spec.retry.delays() == (0, 0)


def test_exceptions_are_kept_by_name() -> None:
    assert Retry(3, retry_on=(ConnectionError, "shop.Busy")).names() == ("builtins.ConnectionError", "shop.Busy")
    assert Retry(3).names() is None


def test_a_single_exception_needs_no_tuple() -> None:
    assert Retry(3, retry_on=ConnectionError).names() == ("builtins.ConnectionError",)
    assert Retry(3, retry_on="shop.Busy").names() == ("shop.Busy",)


def test_only_exceptions_can_be_retried_on() -> None:
    with pytest.raises(DefinitionError, match="not an exception class"):
        Retry(3, retry_on=(int,))


def is_busy(error: Exception) -> bool:
    return "busy" in str(error)


async def too_late(error: Exception) -> bool: ...


def test_a_function_that_is_asked_is_kept_by_its_address() -> None:
    retry = Retry(3, retry_on=(ConnectionError, is_busy, "shop:is_slow"))
    assert retry.names() == ("builtins.ConnectionError", f"{__name__}:is_busy", "shop:is_slow")
    assert retry.predicates == (f"{__name__}:is_busy", "shop:is_slow")
    assert dict(retry.functions) == {f"{__name__}:is_busy": is_busy}
    assert retry == Retry(3, retry_on=("builtins.ConnectionError", f"{__name__}:is_busy", "shop:is_slow"))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (too_late, "cannot be async"),
        (lambda: True, "one argument"),
        (partial(is_busy), "nor a function"),
        (7, "7 is not"),
    ],
)
def test_a_function_that_cannot_be_asked_is_refused(wrong: Any, said: str) -> None:
    with pytest.raises(DefinitionError, match=said):
        Retry(3, retry_on=wrong)
