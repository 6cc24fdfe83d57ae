"""A limit of processor time notices what is too slow, and nothing else."""

import time

import pytest

from tests.processor_time import at_most


def test_what_takes_longer_than_the_loop_is_noticed() -> None:
    with pytest.raises(AssertionError, match=r"it took .* s, and a loop of 100,000 rounds takes"), at_most(100_000):
        sum(i * i for i in range(1_000_000))


def test_what_takes_less_or_waits_is_not_noticed() -> None:
    with at_most(1_000_000):
        sum(i * i for i in range(100_000))
        time.sleep(0.2)
