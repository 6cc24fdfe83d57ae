"""Requests to runs: adopt, cancel, retry, fork and the like. Each waits its turn at the gate of the run."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar

from ...base.clock import SECOND
from ...base.codec import decode, encode
from ...base.ids import RunId, checked_run_id, new_run_id
from ...core.graph import Graph
from ...core.graph.order import reachable
from ...core.kernel.children import root_id
from ...core.model import PARENT_PAUSED, UNPAUSED_RUNS, Create, Gate, Hint, PutRecord, RunNews, RunRow
from ...core.store import Store, reader
from ...errors import DefinitionError, RunConflict
from ...history.audit_log import noted, withdrawn
from ..bodies.held import RunFacts
from ..checking import check_text
from ..code.code import Code
from ..code.versions import Versions, unfit
from ..procedures.begin_fork import begin_fork
from ..procedures.children import child_rows
from ..procedures.gates import GATE_LEASE, ask, delete, enact, switch_graph
from ..procedures.procedure import carry_out, in_turn
from ..starting import kept_input
from ..waiting import Waiting
from ..work import EngineWork

log = logging.getLogger("stepwell")

Answer = TypeVar("Answer")


class Requests:
    """The requests of one engine."""

    def __init__(
        self,
        store: Store,
        code: Code,
        versions: Versions,
        waiting: Waiting,
        work: EngineWork,
    ) -> None:
        self._store, self._code, self._versions, self._waiting = store, code, versions, waiting
        self._work = work
        self._works = work.runner is not None

    def adopt(self, run_id: str) -> RunRow:
        """Work on an unfinished run that another process started and left."""
        row = self._waiting.once_it_goes_on(run_id)
        if not row.status.terminal:
            row = self._in_turn(lambda: self._versions.up_to_date(reader.require_run(self._store, run_id)))
            self._work.work_on(row, self._code.facts(row))
            self._work_on_children(row)
        return row

    def _work_on_children(self, row: RunRow) -> None:
        """Also work on the unfinished runs that perform nodes of a run, as far as their code is here."""
        for child in carry_out(self._store, child_rows(row.id, UNPAUSED_RUNS)):
            try:
                self.adopt(child.id)
            except DefinitionError as error:
                log.warning("run %s waits for its child run %s, whose code is not here: %s", row.id, child.id, error)

    def _check_is_not_performed(self, row: RunRow, purpose: str) -> None:
        """A child run goes on by itself only while the node that it performs waits for it."""
        if row.parent is None or purpose not in ("retry", "reattempt", "resume"):
            return
        above = reader.require_run(self._store, row.parent)
        node = reader.all_nodes(self._store, above.id)[row.parent_node or 0]
        if purpose == "resume" and row.reason == PARENT_PAUSED and above.status.paused:
            raise RunConflict(
                f"run {row.id} performs node {node.id!r} of run {above.id}, which is PAUSED: resume that one",
                run_id=row.id,
            )
        if node.status.terminal:
            root = root_id(row.id, row.depth)
            raise RunConflict(
                f"run {row.id} performed node {node.id!r} of run {above.id}, which is {node.status}: `retry {root}` goes on "
                "with both",
                run_id=row.id,
            )

    def ask(self, gate: Gate) -> RunNews | None:
        """Do what a gate is held for; None when the status of the run does not allow it."""
        grace = {"grace_seconds": decode(gate.arguments)["grace"] / SECOND} if gate.purpose == "cancel" else {}
        return self._enact(gate, noted(gate.purpose, "run", gate.run_id, **grace))

    def _enact(self, gate: Gate, entries: Sequence[PutRecord] = ()) -> RunNews | None:
        """`entries`: what the audit log gets of it; nothing of what an engine does by itself."""
        news = self._in_turn(lambda: carry_out(self._store, enact(gate, entries), self._code.graphs.known))
        runner = self._work.started_runner
        if news is not None and runner is not None:
            if gate.stop:
                runner.stop_run(gate.run_id)
            runner.handle_news([news])
            if gate.purpose == "cancel":
                runner.sweep_in(decode(gate.arguments)["grace"] + 1_000)
        return news

    def go_on(self, gate: Gate, *, accept: bool = False, input: Mapping[str, Any] | None = None) -> RunNews | None:
        """The same for requests that make a run go on: with the present class, and in this engine if it has a runner.

        `input` has values that the class wants and the run lacks.
        """
        row = reader.require_run(self._store, gate.run_id)
        self._check_is_not_performed(row, gate.purpose)
        was_paused = row.status.paused
        entries = noted(gate.purpose, "run", row.id, **self._options(row, gate, accept, input))
        if row.status in gate.allowed or (input and gate.purpose == "resume" and not row.status.terminal):
            row = self._in_turn(lambda: self._up_to_date_if_here(gate.run_id, accept, not input, entries))
        if input:
            filled = self._code.filled_input(row, input)
            gate = gate._replace(arguments=encode({"input": filled}))
            if gate.purpose == "resume" and row.status.moving:  # nobody has noticed that its input does not fit
                self._enact(ask(row.id, "pause", reason=unfit(row, self._code.misfits(row))))
            row = row._replace(input=encode(filled))
        facts = self._facts_if_here(row, gate)
        news = self._enact(gate, entries)
        if news is None and gate.purpose != "resume":
            return None  # a refused request must not make this engine work on the run
        row = self._waiting.once_it_goes_on(row.id)  # this engine may have been late, and another finishes it
        self._tell_workers(row)
        if facts is not None and not row.status.terminal:
            facts.since = row.seq if news is None else news.seq
            self._work.work_on(row, facts)
            self._work_on_children(row)
        if news is None and was_paused and (row.status.completed or row.status.moving):
            # It was resumed with the switch to the present class, and may have completed before the gate could be asked for, or
            # does so before anybody looks again.
            return RunNews(row.id, row.status, row.gate, row.purpose, row.open, row.active, row.failed, row.seq)
        return news

    def change_graph(self, row: RunRow, new: Graph, purpose: Literal["import", "freeze"]) -> None:
        """Switch a run to another graph, which it keeps."""

        entries = noted(purpose, "run", row.id)

        def ask() -> RunNews | None:
            now = reader.require_run(self._store, row.id)  # an earlier request may have changed it
            current = self._code.graphs.of(now)
            trusted = current.trusted if purpose == "freeze" else self._code.may_trust(current, new)
            news = carry_out(
                self._store,
                switch_graph(now, current, new, purpose=purpose, pinned=True, trusted=trusted, entries=entries),
            )
            if news is not None and current.trusted and not trusted:
                log.warning(
                    "run %s now names code that it did not name before; it is worked on where that is registered: jobs=[...]",
                    row.id,
                )
            return news

        news = self._in_turn(ask)
        after = reader.require_run(self._store, row.id)
        if news is None and after.digest == row.digest and self._code.graphs.of(row).follows is not None:
            raise RunConflict(f"run {row.id} is {after.status}: its graph cannot be changed", run_id=row.id)

    def fork(
        self,
        row: RunRow,
        arguments: bytes,
        input: dict[str, Any],
        *,
        run_id: str | None,
        idempotency_key: str | None,
        of_all: bool,
    ) -> RunId:
        """Create a fork of a run, share what the run has done, and work on it if this engine works.

        The same id or key is the same fork. `of_all`: it is of all that the run has done, even if that is more by now.
        """
        chosen = new_run_id() if run_id is None else checked_run_id(run_id)
        if idempotency_key is not None:
            check_text("idempotency_key", idempotency_key)
        given = kept_input(self._code.input_for(row, input)) if input else row.input
        own = Create.like(row)._replace(run_id=chosen, input=given, timeout=None, idempotency_key=idempotency_key)
        own = own._replace(parent=None, parent_node=None, depth=0)  # nobody waits for the fork of a child run
        options = self._options_of_fork(row, arguments, input)
        create = own._replace(fork=arguments, origin=row.id)
        entries = noted("fork", "run", chosen, **options)
        made = begin_fork(self._store, create, entries, of_all=of_all)
        self._tell_workers(row)
        if self._works:
            try:
                self.adopt(made)
            except DefinitionError:
                if run_id is None and idempotency_key is None:  # its code is not here, and nobody knows of the fork yet
                    self._enact(ask(made, "cancel", grace=0))
                    carry_out(self._store, delete(made, withdrawn(entries)))
                raise
        return made

    def delete(self, run_id: RunId) -> None:
        row = reader.require_run(self._store, run_id)
        if row.parent is not None and reader.get_run(self._store, row.parent) is not None:
            root = root_id(row.id, row.depth)
            raise RunConflict(
                f"run {run_id} performs a node of run {row.parent}: delete {root} with all below it", run_id=run_id
            )
        carry_out(self._store, delete(run_id, noted("delete", "run", run_id)))

    def _options(self, row: RunRow, gate: Gate, accept: bool, input: Mapping[str, Any] | None) -> dict[str, Any]:
        """How a run was asked to go on, for the audit log; of inputs only the names."""
        options: dict[str, Any] = {
            **({"accept": True} if accept else {}),
            **({"input": sorted(input)} if input else {}),
        }
        if gate.purpose == "reattempt":
            arguments = decode(gate.arguments)
            options["node"] = self._node(row, arguments["node"])
            options |= {"cascade": True} if arguments.get("cascade") else {}
        return options

    def _options_of_fork(self, row: RunRow, arguments: bytes, input: Mapping[str, Any]) -> dict[str, Any]:
        place = decode(arguments)
        at = {"seq": place["seq"]} if place["before"] is None else {"node": self._node(row, place["before"])}
        return {"of": row.id, **at, **({"input": sorted(input)} if input else {})}

    def _node(self, row: RunRow, index: int) -> str | int:
        order = self._code.graphs.of(row).order
        return order[index] if index < len(order) else index

    def _tell_workers(self, row: RunRow) -> None:
        """Tell other workers of a run that this engine leaves to them."""
        if not self._works and self._store.needs_hints:
            queues = {lane.queue for lane in self._code.graphs.of(row).lanes}
            self._store.send_hint(Hint(queues=tuple(sorted(queues))))

    def _in_turn(self, ask: Callable[[], Answer]) -> Answer:
        """If the holder of the gate has died, it may be taken when the lease is over."""
        return in_turn(ask, GATE_LEASE / SECOND + 5)

    def _up_to_date_if_here(
        self, run_id: RunId, accept: bool, check_input: bool, entries: Sequence[PutRecord]
    ) -> RunRow:
        """The run, healed if its class is here. An engine that only steers runs need not have it.

        A paused run may go on with that, because the request accepts it: then `entries` are of it.
        """
        row = reader.require_run(self._store, run_id)
        try:
            return self._versions.up_to_date(
                row, accept=accept, check_input=check_input, entries=entries if accept else ()
            )
        except DefinitionError:
            if self._works:
                raise
            return row

    def _facts_if_here(self, row: RunRow, gate: Gate) -> RunFacts | None:
        """Look for the code before the run is changed: without it, the run stays as it is."""
        if not self._works:
            return None
        graph, again = self._code.graphs.of(row), set()
        if gate.purpose == "reattempt":
            first = decode(gate.arguments)["node"]
            again = {first, *reachable([first], graph.children)} if first < len(graph.order) else set()
        return self._code.facts(row, again)
