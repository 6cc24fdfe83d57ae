"""A graph as data: the canonical form that is stored, hashed into the digest, and loaded again.

An array of nodes in the order of declaration. Options at their default are left out, or every new option would change
the digest of every graph; there are no dates in it, so the same graph always has the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..codec import encode_checked
from ..ids import NodeId
from .spec import DEFAULT_QUEUE, NO_ARGS, NodeSpec, Retry


def to_document(specs: Sequence[NodeSpec], state: str | None = None) -> bytes:
    """The nodes; with the address of a state, an object of both."""
    nodes = [node_document(spec) for spec in specs]
    return encode_checked(nodes if state is None else {"nodes": nodes, "state": state})


def node_document(spec: NodeSpec) -> dict[str, Any]:
    """One node, defaults left out."""
    node: dict[str, Any] = {"id": spec.id}
    if spec.name != spec.id:
        node["name"] = spec.name
    if spec.depends_on:
        node["depends_on"] = sorted(spec.depends_on)
    if spec.job is not None:
        node["job"] = spec.job
    if spec.args is not NO_ARGS and spec.args:
        node["args"] = dict(spec.args)
    if spec.needs:
        node["needs"] = sorted(spec.needs)
    if spec.kind != "step":
        node["kind"] = spec.kind
    if spec.retry is not None:
        node["retry"] = _retry_document(spec.retry)
    if spec.timeout is not None:
        node["timeout"] = spec.timeout
    if spec.on_lost != "rerun":
        node["on_lost"] = spec.on_lost
    if spec.body != "thread":
        node["body"] = spec.body
    if spec.queue != DEFAULT_QUEUE:
        node["queue"] = spec.queue
    if spec.was:
        node["was"] = sorted(spec.was)
    if spec.side_effects != "opaque":
        node["side_effects"] = spec.side_effects
    return node


def _retry_document(retry: Retry) -> dict[str, Any]:
    document: dict[str, Any] = {"max_attempts": retry.max_attempts}
    if retry.base_delay != 1.0:
        document["base_delay"] = retry.base_delay
    if retry.max_delay != 60.0:
        document["max_delay"] = retry.max_delay
    if retry.retry_on is not None:
        document["retry_on"] = sorted(retry.names() or ())
    return document


def node_from_document(node: dict[str, Any]) -> NodeSpec:
    retry = node.get("retry")
    return NodeSpec(
        id=NodeId(node["id"]),
        name=node.get("name", node["id"]),
        depends_on=tuple(node.get("depends_on", ())),
        job=node.get("job"),
        args=node.get("args") or NO_ARGS,
        needs=tuple(node.get("needs", ())),
        kind=node.get("kind", "step"),
        retry=None
        if retry is None
        else Retry(
            retry["max_attempts"],
            retry.get("base_delay", 1.0),
            retry.get("max_delay", 60.0),
            None if retry.get("retry_on") is None else tuple(retry["retry_on"]),
        ),
        timeout=node.get("timeout"),
        on_lost=node.get("on_lost", "rerun"),
        body=node.get("body", "thread"),
        queue=node.get("queue", DEFAULT_QUEUE),
        was=tuple(node.get("was", ())),
        side_effects=node.get("side_effects", "opaque"),
    )
