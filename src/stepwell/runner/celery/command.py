"""`stepwell worker`: a Celery worker of our own."""

from __future__ import annotations

import logging
import sys
from typing import Any, Literal

from .install import Installed
from .messages import broker_queue_name

Pool = Literal["prefork", "threads", "solo"]


def run_worker(installed: Installed, *, concurrency: int, pool: str, name: str | None, log_level: str) -> int:
    """Run a Celery worker until it is told to end; its exit code."""
    plan = installed.plan
    if log_level.upper() != "DEBUG":  # two lines for every hint are of no use
        for noisy in ("celery.worker.strategy", "celery.app.trace"):
            logging.getLogger(noisy).setLevel(logging.WARNING)
    from celery.utils.nodenames import default_nodename, host_format

    worker: Any = plan.app.Worker(
        hostname=host_format(default_nodename(name)),
        pool_cls=pool,
        pool=pool,
        concurrency=concurrency,
        queues=[broker_queue_name(queue) for queue in plan.queues],
        loglevel=log_level.upper(),
        optimization="fair",
        without_gossip=True,
        without_mingle=True,
        quiet=not sys.stderr.isatty(),
    )
    worker.start()
    return installed.exit_code or int(worker.exitcode or 0)
