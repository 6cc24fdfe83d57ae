"""A graph as data: the canonical form that is stored, hashed into the digest, and loaded again.

An array of nodes in the order of declaration. Options at their default are left out, or every new option would change
the digest of every graph; there are no dates in it, so the same graph always has the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ...base.codec import encode_checked, encode_each
from .spec import NO_ARGS, NODE_OPTIONS, OPTIONS, PLAIN_OPTIONS, NodeSpec


class DocumentSource(NamedTuple):
    """The document that a graph came from: which one, and the JSON Schema of its input, if it has one."""

    digest: str
    input: Mapping[str, Any] | None = None

    @classmethod
    def read(cls, data: Mapping[str, Any] | None) -> DocumentSource | None:
        return None if data is None else cls(data["digest"], data.get("input"))

    def written(self) -> dict[str, Any]:
        return {"digest": self.digest} if self.input is None else {"digest": self.digest, "input": self.input}


def to_document(specs: Sequence[NodeSpec], state: str | None = None, source: DocumentSource | None = None) -> bytes:
    """The nodes; with the address of a state, or with a source, an object of all."""
    nodes = encode_each(map(node_document, specs))
    if state is None and source is None:
        return nodes
    more = {} if source is None else {"source": source.written()}
    others = encode_checked({**({} if state is None else {"state": state}), **more})  # their names come after "nodes"
    return b'{"nodes":%s,%s' % (nodes, others[1:])


def node_document(spec: NodeSpec) -> dict[str, Any]:
    """One node, defaults left out."""
    node: dict[str, Any] = {"id": spec.id}
    if spec.name != spec.id:
        node["name"] = spec.name
    if spec.depends_on:
        node["depends_on"] = sorted(spec.depends_on)
    if spec.job is not None:
        node["job"] = spec.job
    if spec.args:
        node["args"] = dict(spec.args)
    if spec[OPTIONS:] != PLAIN_OPTIONS:
        for field, value in zip(NodeSpec._fields[OPTIONS:], spec[OPTIONS:], strict=True):
            default = NodeSpec._field_defaults[field]
            if value is not default and value != default:
                node[field] = _WRITE[field](value) if field in _WRITE else value
    if spec.templated and spec.depends_on:
        node["depends_on"] = list(spec.depends_on)  # a handler may bring their outputs together in this order
    return node


def nodes_from_document(nodes: Sequence[dict[str, Any]]) -> list[NodeSpec]:
    """Members of a fan-out share one tuple of dependencies, as from a builder, so that it is examined once."""
    shared: dict[tuple[str, ...], tuple[str, ...]] = {}
    return [node_from_document(node, shared) for node in nodes]


def node_from_document(node: dict[str, Any], shared: dict[tuple[str, ...], tuple[str, ...]] | None = None) -> NodeSpec:
    known = {"name": node["id"]}
    for field, value in node.items():
        if field in _READ:
            known[field] = _READ[field](value)
        elif field in _FIELDS:
            known[field] = value
    if shared is not None and "depends_on" in known:
        own = known["depends_on"]
        known["depends_on"] = shared.setdefault(own, own)
    return NodeSpec(**known)


_FIELDS = frozenset(NodeSpec._fields)
_OPTIONS = [option for option in NODE_OPTIONS if option.name in _FIELDS]
_WRITE: dict[str, Callable[[Any], Any]] = {"needs": sorted, **{option.name: option.to_json for option in _OPTIONS}}
_READ: dict[str, Callable[[Any], Any]] = {
    "depends_on": tuple,
    "args": lambda args: args or NO_ARGS,
    "needs": tuple,
    **{option.name: option.of_json for option in _OPTIONS},
}
