"""The orders in which runs are listed."""

from __future__ import annotations

from typing import get_args

from ...base.words import shown
from ...core.model import ListRuns, RunOrder
from ...errors import InputError

ORDERS: tuple[RunOrder, ...] = get_args(RunOrder)


def in_order(query: ListRuns, order: object) -> ListRuns:
    """The same runs in this order; refuses one that has none of them."""
    if order not in ORDERS:
        raise InputError(f"order={shown(order)}: expected one of {', '.join(ORDERS)}")
    unfinished = [status for status in query.statuses if not status.terminal]
    if order != "created" and unfinished:
        raise InputError(
            f"order={order} lists runs that have ended, and none of these is {' or '.join(unfinished)}: "
            "leave out the status, or the order"
        )
    return query._replace(order=ORDERS[ORDERS.index(order)])
