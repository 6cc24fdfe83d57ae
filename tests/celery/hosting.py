"""A Celery application that has tasks and settings of its own, and hosts workflows beside them."""

from __future__ import annotations

import os

from celery import Celery

import stepwell.celery
from tests.celery.work import Held, Order

app = Celery("shop", broker=os.environ["STEPWELL_BROKER"], backend=os.environ["STEPWELL_BROKER"])
app.conf.update(task_acks_late=True, task_time_limit=2, task_soft_time_limit=1, worker_max_tasks_per_child=5)


@app.task(name="shop.add")  # type: ignore[untyped-decorator]
def add(one: int, two: int) -> int:
    return one + two


stepwell.celery.install(app, os.environ["STEPWELL_STORE"], workflows=[Order, Held])
