"""No test waits: delays, time-outs and sleeps take no time in a speedrun."""

from collections.abc import Callable

import orders
import pytest

from stepwell.testing import speedrun


def test_an_order_is_charged_and_thanked_for() -> None:
    run = speedrun(orders.Order(order_id=7, currency="USD"))
    assert "charged 2499 cents" in run.output("thank")


def test_a_rate_that_cannot_be_had_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    rates = iter([None, None, 1.5])

    def ask_for_rate(currency: str) -> float:
        rate = next(rates)
        if rate is None:
            raise ConnectionError("no answer")
        return rate

    monkeypatch.setattr(orders, "ask_for_rate", ask_for_rate)
    run = speedrun(orders.Order(order_id=7))
    assert [attempt.status for attempt in run.node("convert").attempts] == ["FAILED", "FAILED", "COMPLETED"]
    assert run.metrics.wall_seconds > 60  # it waited, but nobody did


def test_orders_still_do_what_they_did(stepwell_replay: Callable[[str], object]) -> None:
    """A run that was recorded, with the code as it is now. After a wanted change, record one anew: see README.md."""
    stepwell_replay("order.cassette.json")
