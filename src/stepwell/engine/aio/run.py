"""`AsyncRun`: a run for coroutines. It has the methods and properties of `Run`, awaited."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

from ...base.clock import Duration
from ...base.ids import RunId
from ...core.graph import Graph
from ...core.model import RunRow, RunStatus
from ...core.model.origin import ForkOrigin
from ...define import Delta
from ...history.comparing import Comparison
from ...history.measuring import RunMetrics
from ..runs.run import Run
from ..runs.views import RunProgress
from .awaited import Awaited, Unawaited, Wrapper, awaited, awaited_as, reading, refused_unawaited

P = ParamSpec("P")
Output = TypeVar("Output")


def verb(method: Callable[Concatenate[Run, P], Run]) -> Callable[Concatenate[AsyncRun, P], Awaited[AsyncRun]]:
    """For what gives a run back; a dry run gives something else."""
    return awaited_as(method, lambda found, pool: AsyncRun(found, pool) if isinstance(found, Run) else found)


class AsyncRun(Wrapper[Run]):
    """A run of an engine that was opened with `async with`.

        run = await engine.start(Order(order_id=7))
        await run                                    # until it has ended; also: await run.wait(timeout=60)
        print(await run.status, await run.outputs)

    Everything is called as in `Run` and awaited; `run.id` is known at once, `run.sync` is the run for threads. Cancelling a
    wait does not change the run.
    """

    @property
    def id(self) -> RunId:
        return self.sync.id

    def __repr__(self) -> str:
        return f"<AsyncRun {self.id}>"

    def _repr_html_(self) -> str:
        """For notebooks, whose loop waits for it: a run is shown where nothing else goes on."""
        return self.sync._repr_html_()

    def __await__(self) -> Generator[Any, None, AsyncRun]:
        return self.wait().__await__()

    async def wait(self, timeout: Duration | None = None) -> AsyncRun:
        """Wait until the run has ended, or has paused because somebody must decide; see `Run.wait`."""
        await self.sync._parts.waiting.wait_on_loop(self.id, timeout)
        return self

    @refused_unawaited
    async def diff(self, other: AsyncRun | Run | str) -> Comparison:
        """This run and another side by side; see `Run.diff`."""
        return await self._pool.read(self.sync.diff, behind(other))

    @overload
    async def output(self, node: Callable[..., Coroutine[Any, Any, Delta[Output]]]) -> Output: ...
    @overload
    async def output(self, node: Callable[..., Coroutine[Any, Any, Output]]) -> Output: ...
    @overload
    async def output(self, node: Callable[..., Delta[Output]]) -> Output: ...
    @overload
    async def output(self, node: Callable[..., Output]) -> Output: ...
    @overload
    async def output(self, node: str) -> Any: ...
    @refused_unawaited
    async def output(self, node: Any) -> Any:
        """The output of one node; see `Run.output`."""
        return await self._pool.read(self.sync.output, node)

    @refused_unawaited
    async def forks(self) -> list[AsyncRun]:
        """The runs that were forked from this one, newest first."""
        return [AsyncRun(run, self._pool) for run in await self._pool.read(self.sync.forks)]

    @property
    def parent(self) -> Awaited[AsyncRun | None]:
        """The run of which this one performs a node; see `Run.parent`."""
        return Unawaited(self._parent(), "AsyncRun.parent", "run.parent")

    async def _parent(self) -> AsyncRun | None:
        parent = await self._pool.read(lambda: self.sync.parent)
        return None if parent is None else AsyncRun(parent, self._pool)

    @refused_unawaited
    async def children(self, node: str | None = None) -> list[AsyncRun]:
        """The runs that perform nodes of this one, oldest first; see `Run.children`."""
        return [AsyncRun(run, self._pool) for run in await self._pool.read(self.sync.children, node)]

    row: reading[RunRow] = reading(lambda run: run.row, Run.row.__doc__)
    status: reading[RunStatus] = reading(lambda run: run.status, Run.status.__doc__)
    progress: reading[RunProgress] = reading(lambda run: run.progress, Run.progress.__doc__)
    workflow: reading[str] = reading(lambda run: run.workflow, Run.workflow.__doc__)
    input: reading[dict[str, Any]] = reading(lambda run: run.input, Run.input.__doc__)
    graph: reading[Graph] = reading(lambda run: run.graph, Run.graph.__doc__)
    result: reading[Any] = reading(lambda run: run.result, Run.result.__doc__)
    outputs: reading[dict[str, Any]] = reading(lambda run: run.outputs, Run.outputs.__doc__)
    state: reading[dict[str, Any]] = reading(lambda run: run.state, Run.state.__doc__)
    metrics: reading[RunMetrics] = reading(lambda run: run.metrics, Run.metrics.__doc__)
    origin: reading[ForkOrigin | None] = reading(lambda run: run.origin, Run.origin.__doc__)
    path: reading[str] = reading(lambda run: run.path, Run.path.__doc__)

    nodes = awaited(Run.nodes, reads=True)
    node = awaited(Run.node, reads=True)
    logs = awaited(Run.logs, reads=True)
    effects = awaited(Run.effects, reads=True)
    show = awaited(Run.show, reads=True)
    why = awaited(Run.why, reads=True)
    audit = awaited(Run.audit, reads=True)
    replay = awaited(Run.replay)
    checkpoint = awaited(Run.checkpoint)
    checkpoints = awaited(Run.checkpoints, reads=True)
    export = awaited(Run.export, reads=True)
    export_graph = awaited(Run.export_graph, reads=True)
    delete = awaited(Run.delete)

    check = verb(Run.check)
    retry = verb(Run.retry)
    reattempt = verb(Run.reattempt)
    cancel = verb(Run.cancel)
    pause = verb(Run.pause)
    resume = verb(Run.resume)
    freeze = verb(Run.freeze)
    import_graph = verb(Run.import_graph)
    fork = verb(Run.fork)


def behind(run: AsyncRun | Run | str) -> Run | str:
    """The run for threads."""
    return run.sync if isinstance(run, AsyncRun) else run
