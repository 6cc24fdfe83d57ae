"""`Parts`: what a `Run`, reports and the edges use of an engine, or of the client of a server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from ..base.clock import Duration
from ..base.ids import RunId
from ..core.graph import Graph
from ..core.model import Gate, RunRow
from ..core.store import Store
from .code.code import Code
from .documents import Documents

if TYPE_CHECKING:
    from .code.serving import ServedVersions
    from .events import Events
    from .reports.checkpoints import KnownKeys
    from .starting import Starting
    from .work import EngineWork


class RequestPort(Protocol):
    """Requests to runs. What a request returns is None if the status of the run does not allow it."""

    def ask(self, gate: Gate) -> object: ...

    def go_on(self, gate: Gate, *, accept: bool = False, input: Mapping[str, Any] | None = None) -> object: ...

    def change_graph(self, row: RunRow, new: Graph, purpose: Literal["import", "freeze"]) -> None: ...

    def fork(
        self,
        row: RunRow,
        arguments: bytes,
        input: dict[str, Any],
        *,
        run_id: str | None,
        idempotency_key: str | None,
        of_all: bool,
    ) -> RunId: ...

    def delete(self, run_id: RunId) -> None: ...


class WaitingPort(Protocol):
    """Waiting for runs. Each gives the run once it has ended or needs a decision, and raises RunStillActive after `timeout`."""

    def wait(self, run_id: RunId, timeout: Duration | None = None) -> RunRow: ...

    def wait_for_started(self, run_id: RunId, timeout: Duration | None = None) -> RunRow | None:
        """The same for a run that was just started; None if it completed and there is nothing to read."""

    async def wait_on_loop(self, run_id: RunId, timeout: Duration | None = None) -> RunRow: ...


@dataclass(frozen=True)
class Parts:
    store: Store
    code: Code
    documents: Documents
    requests: RequestPort
    waiting: WaitingPort
    checkpoint_keys: KnownKeys
    """The steps of checkpoints by their keys, as far as they are known."""


@dataclass(frozen=True)
class EngineParts(Parts):
    """What only an engine has."""

    starting: Starting
    work: EngineWork
    serving: ServedVersions
    listeners: Events
