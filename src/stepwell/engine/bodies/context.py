"""`ctx`: what a body may read about its attempt, and what it may report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ...base.ids import NodeId, RunId, idempotency_key
from ...define import check_unchanged
from ...define.code.invoke import copied_values
from ...errors import DefinitionError, InputError, StateError, Stopped
from ...history.effects.repeatable import Outside, Repeatable
from .host import Host
from .outputs import Outputs


class RunInfo(NamedTuple):
    """What a body is told about its run."""

    id: str
    workflow: str
    input: Mapping[str, Any]


class Context(Repeatable):
    """A body with a parameter named `ctx` receives this. Its host answers, wherever the body runs.

    It has many names because a body may want to know much; all but four are properties to read.
    """

    __slots__ = ("_host", "_key", "_outputs", "_state", "outcome")

    def __init__(self, host: Host) -> None:
        super().__init__()
        self._host = host
        self._key: str | None = None
        self._outputs: Outputs | None = None
        self._state: Any = None
        self.outcome: dict[str, Any] = {}
        """Metadata for the attempt: shown to people, not data for other nodes."""

    def __repr__(self) -> str:
        return f"<Context of {self.node_name}, attempt {self.attempt}, run {self.run_id}>"

    @property
    def run(self) -> RunInfo:
        return RunInfo(self.run_id, self.workflow, self.input)

    @property
    def run_id(self) -> RunId:
        return self._host.info.run_id

    @property
    def workflow(self) -> str:
        return self._host.info.workflow

    @property
    def input(self) -> Mapping[str, Any]:
        """A copy of the input of the run: no other attempt sees what this one changes in it."""
        return copied_values(self._host.info.input)

    @property
    def node_id(self) -> NodeId:
        return self._host.info.node_id

    @property
    def node_name(self) -> str:
        return self._host.info.node_name

    @property
    def parents(self) -> tuple[NodeId, ...]:
        """The ids of the nodes that this one depends on, in the order in which they were declared."""
        return self._host.spec.depends_on

    @property
    def attempt(self) -> int:
        """1 for the first try at this node."""
        return self._host.info.attempt

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of this node in this run. Pass it to services that recognise repeated requests.

        It changes only when somebody reruns the node after it had completed. A node may have its own:
        `@step(idempotency_key=lambda self: f"order-{self.order_id}")`.
        """
        info = self._host.info
        return idempotency_key(info.run_id, info.identity, info.generation, self._key)

    def _use_key(self, key: object) -> None:
        """Use the key that the node declares."""
        if not isinstance(key, str) or not key:
            raise InputError(
                f"the idempotency_key of node {self.node_name!r} gave {key!r}: expected a text that is not empty"
            )
        self._key = key

    @property
    def _own_jobs(self) -> Any:
        """What the engine, or the parent of this process, gives jobs of Stepwell itself."""
        found = self._host.bodies.own_jobs
        return None if found is None else found()

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return self._host.info.seed

    @property
    def order_key(self) -> int:
        """The position of the node among those of its level, for a stable order; 0 if it was removed."""
        return self._host.info.order_key

    @property
    def _identity(self) -> str:
        return self._host.info.identity

    def _open_outside(self) -> Outside:
        return self._host.outside()

    def _check_effects_allowed(self, name: str) -> None:
        spec = self._host.spec
        if spec.side_effects == "pure":
            raise DefinitionError(
                f'node {spec.name!r} is declared side_effects="pure" and asks for effect {name!r}: '
                'declare it "recordable"'
            )

    @property
    def outputs(self) -> Outputs:
        if self._outputs is None:
            self._outputs = self._host.outputs()
        return self._outputs

    @property
    def state(self) -> Any:
        """The state of the workflow as this node sees it: folded from what its ancestors returned, whatever else has finished.

        An immutable instance of the workflow's State. To change it, a body returns `Delta(notes=[...])`.
        """
        if self._state is None:
            declared = self._host.bodies.state
            if declared is None:
                raise no_state(self.workflow)
            self._state = declared.view(self._host.state())
        return self._state

    def _check_state(self) -> None:
        """Raise StateError if the body has changed a value of the state in place, as that would be lost."""
        if self._state is not None:
            check_unchanged(self._state, self.node_name)

    @property
    def db(self) -> Any:
        """With `transaction=True`: a psycopg connection to the server of the store, in a transaction of its own.

        It is committed together with the completion of this attempt when the body returns, and rolled back when it raises.
        """
        return self._host.db()

    @property
    def replaying(self) -> bool:
        """Whether this is a replay: the body is answered from its record, and none of its effects happen."""
        return self._host.replays

    @property
    def stopping(self) -> bool:
        """Whether this attempt was asked to stop, or its result would no longer be recorded."""
        return self._host.stopping()

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Report how far this body is. Call it as often as you like: the latest is stored, about twice a second.

        for number, row in enumerate(rows):
            ctx.progress(number, len(rows))
        """
        output = self._host.output()
        if output is not None:
            output.progress(done, total, message)

    def check(self) -> None:
        """Raise Stopped if this attempt should stop. Call it now and then in long loops."""
        if self.stopping:
            raise Stopped(f"node {self.node_name!r} of run {self.run_id} was asked to stop")


def no_state(workflow: str) -> StateError:
    return StateError(
        f"{workflow} declares no state: write `class State:` with its fields in the workflow, or Builder(..., state=...)"
    )
