"""The kinds of causes that `why` gives."""

from __future__ import annotations

from enum import StrEnum


class CauseKind(StrEnum):
    """The kind of a cause. Scripts and user interfaces read these names: new ones may come, none changes or goes."""

    # The status of a node.
    WAITS_FOR_PARENTS = "waits_for_parents"
    READY = "ready"
    RUNNING = "running"
    WAITS_UNTIL = "waits_until"
    WAITS_FOR_RUN = "waits_for_run"
    COMPLETED = "completed"
    FAILED = "failed"
    UPSTREAM_FAILED = "upstream_failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"
    # How an attempt ended, and what else made a node run.
    ATTEMPT_FAILED = "attempt_failed"
    ATTEMPT_POSTPONED = "attempt_postponed"
    ATTEMPT_TIMED_OUT = "attempt_timed_out"
    ATTEMPT_LOST = "attempt_lost"
    ATTEMPT_RELEASED = "attempt_released"
    ATTEMPT_CANCELLED = "attempt_cancelled"
    ATTEMPT_SUPERSEDED = "attempt_superseded"
    CHILD_RUN = "child_run"
    PARENTS_DONE = "parents_done"
    RUN_STARTED = "run_started"
    ASKED = "asked"
    # The workers that should run it.
    NO_WORKER = "no_worker"
    NOT_SERVED = "not_served"
    QUEUE_NOT_SERVED = "queue_not_served"
    LACKING = "lacking"
    BUSY = "busy"
    ALONE = "alone"
    WORKER_GONE = "worker_gone"
    # The status of the run.
    HELD = "held"
    PAUSED = "paused"
    DEADLINE = "deadline"
    REASON = "reason"
    NOTHING_TO_DO = "nothing_to_do"
