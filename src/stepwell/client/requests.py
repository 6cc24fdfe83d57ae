"""The requests of a `Run` to its engine, sent to a server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from ..clock import SECOND
from ..codec import decode
from ..graph import Graph, to_frozen
from ..ids import RunId, new_run_id
from ..model import Gate, RunRow
from ..runner.code.code import Code
from ..store import Store, reader
from .transport import Transport, path_of


class RemoteRequests:
    """The interface of `runner.runs.requests.Requests`. Refusals of the server raise the same errors."""

    def __init__(self, transport: Transport, store: Store, code: Code) -> None:
        self._transport, self._store, self._code = transport, store, code

    def ask(self, gate: Gate) -> bool:
        """Cancel or pause a run."""
        grace = {"grace_seconds": decode(gate.arguments)["grace"] / SECOND} if gate.purpose == "cancel" else {}
        self._post(gate.run_id, gate.purpose, **grace)
        return True

    def go_on(self, gate: Gate, *, accept: bool = False, input: Mapping[str, Any] | None = None) -> bool:
        if gate.purpose == "reattempt":
            given = decode(gate.arguments)
            row = reader.require_run(self._store, gate.run_id)
            node = self._code.graphs.of(row).order[given["node"]]
            self._post(gate.run_id, "nodes", node, "reattempt", cascade=given.get("cascade", False))
        elif gate.purpose == "resume" and input:
            self._post(gate.run_id, "resume", accept=accept, input=dict(input))
        else:
            self._post(gate.run_id, gate.purpose, accept=accept)
        return True

    def change_graph(self, row: RunRow, new: Graph, purpose: Literal["import", "freeze"]) -> None:
        if purpose == "freeze":
            self._post(row.id, "freeze")
        else:
            form = to_frozen(new, row.created_at / SECOND)
            self._transport.ask("PUT", path_of("runs", row.id, "graph", "frozen"), body=form)

    def fork(self, row: RunRow, arguments: bytes, input: dict[str, Any], run_id: str | None) -> RunId:
        given = decode(arguments)
        before = given["before"]
        at = given["seq"] if before is None else self._code.graphs.of(row).order[before]
        chosen = new_run_id() if run_id is None else run_id
        made = self._post(row.id, "fork", at=at, run_id=chosen, **({"input": input} if input else {}))
        return RunId(made["id"])

    def delete(self, run_id: RunId) -> None:
        self._transport.ask("DELETE", path_of("runs", run_id))

    def _post(self, run: str, *path: str, **body: Any) -> Any:
        return self._transport.post(path_of("runs", run, *path), body)
