"""What the HTTP API answers when it cannot do what was requested: problem+json (RFC 9457)."""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict


class ProblemPlace(TypedDict):
    """One of several things that are wrong with a request."""

    path: str
    """Where it is, such as `$.nodes[2].config.url`."""
    message: str
    """What is wrong."""
    line: NotRequired[int]
    """The line of the document, if it is known."""
    column: NotRequired[int]
    """The column of that line."""
    found: NotRequired[str]
    """What is there."""
    expected: NotRequired[str]
    """What could be there."""
    nearest: NotRequired[str]
    """The name that was probably meant."""


class ProblemRecord(TypedDict):
    """What went wrong, and what to do about it."""

    type: str
    """Always `about:blank`: `title` and `status` say what kind of problem it is."""
    title: str
    """The kind of problem, such as `Not Found`."""
    status: int
    """The status code of the response."""
    detail: str
    """What happened, to which run and node, and what to do next."""
    instance: NotRequired[str]
    """The path that was requested."""
    error: NotRequired[str]
    """The error of `stepwell.errors` that `Client` raises for it, such as `RunConflict`."""
    run_id: NotRequired[str]
    """The run that it is about."""
    missing: NotRequired[str]
    """The class, or workflow, whose code no worker has."""
    command: NotRequired[str]
    """The command that does the same where the code is."""
    problems: NotRequired[list[ProblemPlace]]
    """Everything that is wrong with the request, each with its place."""
