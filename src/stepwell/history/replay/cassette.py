"""Cassettes: a recorded run as one JSON file, to be replayed without its store, by this version and by later ones.

    {"cassette": 1,                       the version of this form
     "stepwell": "0.1.0",                 who wrote it
     "run": {"id", "workflow", "target", "status", "input", "seed", "graph"},
     "graphs": {digest: document},        the graphs that its nodes ran under
     "nodes": [{"index", "id", "attempt", "generation", "output", "sha256", "effects": [...]}]}

A seed is a string, because programs in other languages would round it. `graph` names one of the graphs. A node has its
number in the graph, and `skipped` instead of an output if its condition did not hold. Where they differ from those of the
run it has a `graph`, a `run` (id and input: a fork shares it with that run), a `delta` to the state of the workflow, a `stub`,
the reason why it cannot be run again, or `given`: the outputs above it that were other ones when it began, each with `index`,
`output`, `delta` and `sha256`. `sha256` is the hash of what is stored as an output.

An effect has `index`, `name`, `occurrence`, `time`, `seconds`, `request` and `request_sha256`; `response` or `raised` and
`response_sha256`, or `open` when its body ended without waiting for it; and if they apply `awaited`, `durable` and
`from_attempt`.

Known secrets are masked in all of it. Reading one executes and imports nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ...base.codec import decode, sha256
from ...base.masking import mask
from ...base.version import __version__
from ...core.graph import Graph
from ...core.model.outputs import delta_of, output_of, with_delta
from ...errors import InputError
from ..effects.record import Effect, masked, masked_part, with_masked_requests
from .recorded import RecordedNode, RecordedRun

FORMAT = 1


def to_cassette(recorded: RecordedRun) -> dict[str, Any]:
    """A recorded run as data that `json.dump` takes."""
    graphs = {graph.digest: graph for graph in (recorded.graph, *(node.graph for node in recorded.nodes))}
    _check_names(recorded)
    return {
        "cassette": FORMAT,
        "stepwell": __version__,
        "run": {
            "id": recorded.run_id,
            "workflow": recorded.workflow,
            "target": recorded.target,
            "status": recorded.status,
            "input": decode(masked(recorded.input)),
            "seed": str(recorded.seed),
            "graph": recorded.graph.digest,
        },
        "graphs": {digest: _graph_data(graph) for digest, graph in graphs.items()},
        "nodes": [_node_data(recorded, node) for node in recorded.nodes],
    }


def cassette_text(recorded: RecordedRun) -> str:
    """The text of a cassette file: the same run gives the same text."""
    return json.dumps(to_cassette(recorded), indent=1, ensure_ascii=False) + "\n"


def parts(stored: bytes) -> tuple[bytes, bytes | None]:
    """The output of an attempt, and its delta to the state of the workflow if it has one."""
    return output_of(stored), delta_of(stored)


def joined(output: bytes, delta: bytes | None) -> bytes:
    """What is stored of both."""
    return output if delta is None else with_delta(output, delta)


def masked_output(stored: bytes) -> bytes:
    output, delta = parts(stored)
    return joined(masked(output), None if delta is None else masked(delta))


def _check_names(recorded: RecordedRun) -> None:
    ids = {recorded.run_id, *(node.run_id for node in recorded.nodes)}
    names = [("workflow", recorded.workflow), ("target", recorded.target or ""), *(("id", run_id) for run_id in ids)]
    for what, name in names:
        if mask(name) != name:
            raise InputError(
                f"the {what} of this run holds a value that is marked as a secret, so it cannot be exported: "
                f"by another {what} it would be another run"
            )


def _graph_data(graph: Graph) -> Any:
    if masked(graph.document) is not graph.document:
        raise InputError(
            "the graph of this run holds a value that is marked as a secret, so it cannot be exported: a graph is kept as "
            "it is, or it would be another graph. Let the body read the secret itself instead of giving it in args="
        )
    return decode(graph.document)


def _node_data(recorded: RecordedRun, node: RecordedNode) -> dict[str, Any]:
    data: dict[str, Any] = {
        "index": node.index,
        "id": recorded.graph.order[node.index],
        "attempt": node.attempt,
        "generation": node.generation,
        **({"skipped": True} if node.skipped else _output_data(node.output)),
    }
    if node.graph.digest != recorded.graph.digest:
        data["graph"] = node.graph.digest
    if (node.run_id, node.input) != (recorded.run_id, recorded.input):
        data["run"] = {"id": node.run_id, "input": decode(masked(node.input))}
    if node.stub is not None:
        data["stub"] = node.stub
    if node.given:
        data["given"] = [{"index": index, **_output_data(output)} for index, output in node.given]
    data["effects"] = [_effect_data(effect) for effect in with_masked_requests(node.effects)]
    return data


def _output_data(stored: bytes) -> dict[str, Any]:
    without_secrets = masked_output(stored)
    output, delta = parts(without_secrets)
    data = {"output": decode(output)} | ({} if delta is None else {"delta": decode(delta)})
    return {**data, "sha256": sha256(without_secrets)}


def _effect_data(effect: Effect) -> dict[str, Any]:
    data: dict[str, Any] = {
        "index": effect.index,
        "name": effect.name,
        "occurrence": effect.occurrence,
        "time": effect.time,
        "seconds": effect.seconds,
    }
    for field, value, digest in effect.parts:
        data[field], hashed = masked_part(value, digest)
        data[f"{'request' if field == 'request' else 'response'}_sha256"] = hashed
    marks: Mapping[str, Any] = {
        "awaited": effect.awaited,
        "durable": effect.durable,
        "from_attempt": effect.from_attempt,
        "open": effect.open,
    }
    return data | {name: value for name, value in marks.items() if value}
