"""Triggers: their definition, their status, and what they did."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict


class LastFire(TypedDict):
    """The latest fire of a trigger."""

    time: str
    """The time it was for."""
    run: str | None
    """The run that it started."""


class BackfillRange(TypedDict):
    """A backfill that is not done yet."""

    after: str
    """Times after this one are started."""
    until: str
    """The last time that is started."""


class WebhookRecord(TypedDict):
    """What proves a request, and what identifies it; without what is at its default."""

    secret: str
    """The secret it is proved by, as `secret:NAME`."""
    scheme: NotRequired[Literal["bearer", "hmac", "github", "gitlab", "stripe", "slack", "standard"]]
    """How it is proved; `hmac` by default."""
    header: NotRequired[str]
    """The header with the secret or the signature."""
    window_seconds: NotRequired[float]
    """How long ago a request may have been sent."""
    delivery: NotRequired[str]
    """A template of what tells one delivery from another."""
    rate_per_minute: NotRequired[int]
    """How many requests are taken in a minute."""


class RunFinishedRecord(TypedDict):
    """Which runs a trigger waits for; without what is at its default."""

    workflow: str
    """The name of their workflow."""
    status: NotRequired[list[Literal["COMPLETED", "FAILED", "CANCELLED"]]]
    """How they end; `COMPLETED` by default."""


class WantedStatesRecord(TypedDict):
    """Which states a trigger waits for; without what is at its default."""

    pipeline: str
    """The pipeline."""
    state_type: NotRequired[str]
    """The stage that makes them, or their type."""
    path: NotRequired[str]
    """A pattern of their paths."""
    filter: NotRequired[str]
    """An expression that is true of them."""
    existing: NotRequired[bool]
    """Whether states count that were fresh before the first build with the trigger."""


class TriggerRecord(TypedDict):
    """A trigger: its definition, without what is at its default, and its status."""

    name: str
    """Its name."""
    workflow: str
    """The stored document or class whose runs it starts."""
    kind: Literal["cron", "every", "webhook", "run_finished", "state"]
    """What makes it fire; the field of this name says more."""
    cron: NotRequired[str]
    """Minute, hour, day of month, month, day of week."""
    timezone: NotRequired[str]
    """Of `cron`: where."""
    every: NotRequired[float]
    """The interval, in seconds."""
    start: NotRequired[str]
    """Of `every`: from when it counts."""
    catch_up: NotRequired[Literal["skip", "last", "all"]]
    """What to do about times that were missed."""
    overlap: NotRequired[Literal["allow", "skip", "queue"]]
    """What to do while the run before is active."""
    grace_seconds: NotRequired[float]
    """How late a time may be before it counts as missed."""
    webhook: NotRequired[WebhookRecord]
    """What proves a request, and what identifies it."""
    run_finished: NotRequired[RunFinishedRecord]
    """The workflow whose runs it waits for, and how they end."""
    state: NotRequired[WantedStatesRecord]
    """The pipeline and the states that it waits for."""
    input: NotRequired[dict[str, Any] | str]
    """The input of its runs, or a template of it."""
    priority: NotRequired[int]
    """The priority of its runs."""
    tags: NotRequired[dict[str, str]]
    """The tags of its runs."""
    description: NotRequired[str]
    """What it is for."""
    version: int
    """The version of its definition."""
    paused: bool
    """Whether it does not fire."""
    declared_in: str | None
    """The document or class that declares it; null if it was added by itself."""
    added_at: str
    """When it was added."""
    next: list[str]
    """When it fires next."""
    last: LastFire | None
    """Its latest fire."""
    fired: int
    """How many runs it has started."""
    left_out: int
    """How many times it has left out."""
    waiting: int
    """How many times wait for the run before, or to be started."""
    backfills: list[BackfillRange]
    """Backfills that are not done yet."""
    error: str | None
    """Why the latest start did not succeed."""


class TriggerDetail(TriggerRecord):
    """A trigger as `stepwell trigger show --json` prints it."""

    versions: int
    """How many versions of its definition there are."""


class FiredRecord(TypedDict):
    """The run that a trigger started."""

    run: str
    """The id of the run."""
    new: bool
    """False: this delivery came before, and started that run then."""


class BackfillRecord(TypedDict):
    """The times of a backfill."""

    times: list[str]
    """The times whose runs are started, or would be."""
    dry_run: bool
    """Whether nothing is started."""
