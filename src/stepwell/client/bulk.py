"""Requests to many runs of a server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..base.words import iso
from ..core.model import ListRuns
from ..engine.runs.bulk import BulkVerb
from .transport import Transport, path_of


def request_bulk(transport: Transport, asked: BulkVerb, body: Mapping[str, Any]) -> Any:
    """The answer to a dry run, which is repeated if it is lost, or to the request itself."""
    whole = {**asked.options, "node": asked.node, "key": asked.key, **body}
    wanted = {name: value for name, value in whole.items() if value is not None}
    return transport.post(path_of("bulk", asked.verb), wanted, repeatable="dry_run" in body)


def filter_of(query: ListRuns) -> dict[str, Any]:
    """Which runs, in the words of the server."""
    fields: dict[str, Any] = {
        "status": list(query.statuses),
        "workflow": query.workflow,
        "tag": [f"{name}={value}" for name, value in query.tags],
        "since": iso(query.since),
        "until": iso(query.until),
        "prefix": query.prefix,
        "fork_of": query.origin,
        "q": query.text,
        "error": query.error,
        "parent": query.parent,
        "children": query.parent is None and not query.roots,
    }
    return {name: value for name, value in fields.items() if value}
