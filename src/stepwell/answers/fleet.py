"""Workers, tokens and sessions."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from ..base.setting_types import ColourName
from .causes import CauseKind
from .scopes import Scope


class ServedRecord(TypedDict):
    """A workflow that a worker has the code of."""

    workflow: str
    """Its name."""
    digest: str
    """The digest of its graph."""


class LackRecord(ServedRecord):
    """A workflow that a worker cannot work on."""

    what: str
    """What is missing."""


class HoldRecord(TypedDict):
    """A node that a worker is running."""

    run: str
    """The id of the run."""
    node: str
    """The id of the node."""
    attempt: int
    """The number of the attempt."""
    seconds: float
    """How long it has been running."""


class WorkerRecord(TypedDict):
    """A worker and its lease."""

    id: str
    """Its id."""
    host: str | None
    """The machine it is on."""
    pid: int | None
    """Its process."""
    celery: str | None
    """The name of the Celery worker that it is a process of."""
    idle: bool
    """Whether it gets no hints although there is work that it could do."""
    alive: bool
    """Whether its lease is valid, and its process may live."""
    lease_until: str
    """Until when it holds what it runs."""
    renewed_at: str
    """When it last said that it lives."""
    lease_seconds_left: float
    """How long its lease is still valid; negative if it has run out."""
    renewed_seconds_ago: float
    """How long ago it last said that it lives."""
    queues: list[str] | None
    """The queues it takes nodes from; null: all."""
    serves: list[ServedRecord]
    """The workflows it has the code of."""
    lacks: list[LackRecord]
    """The workflows it cannot work on, and why."""
    holds: list[HoldRecord]
    """What it is running, in the newest of the runs that are RUNNING."""


class UnservedRecord(TypedDict):
    """Work that no live worker would take."""

    workflow: str
    """The name of the workflow."""
    digest: str
    """The digest of its graph."""
    queue: str | None
    """The queue whose nodes nobody takes; null: no node of this version is taken."""
    run: str
    """The id of one of the runs that wait."""
    kind: CauseKind
    """Why, in a word: `no_worker`, `lacking`, `not_served` or `queue_not_served`."""
    because: str
    """Why, as a sentence."""
    module: str | None
    """The module that a worker needs; empty if it needs none, null if it is not known."""


class UnservedReport(TypedDict):
    """What waits for a worker that is not there."""

    items: list[UnservedRecord]
    """By workflow and version, and then the queues of versions that are served."""
    complete: bool
    """Whether these are all; only so many versions of workflows are looked at."""


class TokenRecord(TypedDict):
    """A token of the HTTP API."""

    id: str
    """Its id, which is not secret."""
    name: str
    """Whom or what it is for."""
    scopes: list[Scope]
    """What it allows."""
    status: Literal["valid", "expired", "revoked"]
    """Whether it can be used."""
    created_at: str
    """When it was made."""
    expires_at: str
    """Until when it can be used."""
    revoked_at: str | None
    """When it was revoked."""


class NewToken(TokenRecord):
    """A token that was made now."""

    token: str
    """The token itself, which is shown only now."""


class SessionRecord(TypedDict):
    """The caller, and what it may do."""

    name: str
    """The name of its token."""
    scopes: list[Scope]
    """What it may do."""
    token: str | None
    """The id of its token; null as long as the store has no token."""
    by_cookie: bool
    """Whether it is known by the cookie of a session."""


class ServerRecord(TypedDict):
    """What the pages show of their server."""

    version: str
    """The version of Stepwell."""
    environment: str | None
    """What its settings call it, as in production."""
    environment_colour: ColourName
    """The colour of that name."""
    trace_url: str | None
    """Where the traces of a run or node are: a URL with {run} and {node} in the places of their ids."""


class HealthRecord(TypedDict):
    """Whether the server is there, or ready."""

    status: Literal["ok", "ready"]
    """`ok`: the process answers; `ready`: the store takes commits."""
