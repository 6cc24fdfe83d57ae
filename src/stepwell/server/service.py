"""What the routes work with: a store, an engine that reads and steers, and perhaps one that runs bodies."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated, NamedTuple, ParamSpec, TypeVar

from ..base.ids import Digest, RunId
from ..core.graph import Graph
from ..core.model import RunRow
from ..core.store import Store, reader
from ..engine import Engine, Run
from ..engine.code.graphs import load_outline
from ..engine.code.registering import KnownHandlers
from ..engine.recent import Recent
from ..engine.reports.graphs import grouping_of
from ..engine.reports.grouping import Grouping
from ..engine.runs.stored import StoredRun
from ..handlers import Handlers
from .access.callers import Callers
from .builds import Builds
from .hooks import Hooks
from .problems import HttpProblem
from .readiness import Readiness
from .streams.states import StateFeed
from .threads import RequestThreads

if TYPE_CHECKING:
    from ..base.setting_types import ColourName
    from ..pipeline import Pipeline
    from .counting import RequestCounts
    from .streams.feed import Feed


KEPT_GROUPINGS = 32
P = ParamSpec("P")
T = TypeVar("T")


class About(NamedTuple):
    """What the pages show of this server: settings of the same names."""

    environment: str | None = None
    environment_colour: ColourName = "grey"
    trace_url: str | None = None


class ServerProcess:
    """One server process. `worker` runs bodies here, if there is one; `engine` reads, and leaves its requests to workers."""

    def __init__(
        self,
        store: Store,
        *,
        worker: Engine | None = None,
        handlers: Handlers | None = None,
        jobs: Iterable[str] = (),
        pipelines: Iterable[Pipeline] = (),
        about: About | None = None,
    ) -> None:
        from .streams.feed import Feed

        self.store = store
        self.worker = worker
        self.about = about or About()
        here = Handlers() if handlers is None else handlers
        self.handlers = KnownHandlers(here, store)
        self.engine = Engine(store, runner=None, jobs=jobs, handlers=here)
        self._groupings: Recent[Digest, Grouping] = Recent(KEPT_GROUPINGS)
        self.builds = Builds()
        self.pipelines: dict[str, Pipeline] = {each.name: each for each in pipelines}
        self.feed: Feed = Feed(store, self.graph)
        self.hooks = Hooks(self.handlers, self.engine, worker)
        self.threads = RequestThreads()
        self.callers = Callers(store, self.threads)
        self.readiness = Readiness(store)
        self.state_feed = StateFeed()
        self.requests: RequestCounts | None = None
        """What counts requests, once there is an application."""

    def close(self) -> None:
        """End the streams and the threads. The caller closes the store and the worker."""
        self.feed.close()
        self.threads.close()

    async def commit(self, call: Callable[P, T], /, *args: P.args, **keywords: P.kwargs) -> T:
        """Make a call that commits, in a thread."""
        return await self.threads.run("commit", call, *args, **keywords)

    def record_put(self, kind: str) -> None:
        """A record of this kind was put by this process."""
        if self.callers.put(kind):
            self.feed.wake()

    def row(self, run_id: str) -> RunRow:
        return reader.require_run(self.store, run_id)

    def stored(self, run_id: str) -> StoredRun:
        row = self.row(run_id)
        return StoredRun(self.store, row, lambda digest: self.graph(digest, row.id))

    def graph(self, digest: Digest, run_id: RunId | None = None) -> Graph:
        return self.engine.parts.code.graphs.get(digest, run_id)

    def grouping(self, digest: Digest, run_id: RunId) -> Grouping:
        """The groups of a graph that a run has or had."""
        return self._grouping(digest, lambda: Grouping(load_outline(self.store, digest, run_id)))

    def grouping_of(self, graph: Graph) -> Grouping:
        """The groups of the graph of a workflow."""
        return self._grouping(graph.digest, lambda: grouping_of(graph))

    def _grouping(self, digest: Digest, make: Callable[[], Grouping]) -> Grouping:
        """Those of graphs that were shown last are kept."""
        grouping = self._groupings.get(digest)
        if grouping is None:
            grouping = self._groupings[digest] = make()
        return grouping

    def run(self, run_id: str) -> Run:
        return Run(self.engine.parts, self.row(run_id).id)

    def step_of(self, run: Run, at: str) -> int | str:
        """What a path names: the number of an entry, unless a checkpoint has this label."""
        return int(at) if at.isascii() and at.isdigit() and len(at) < 19 and run._step_of(at) is None else at

    def index_of(self, run: StoredRun, node: str) -> int:
        """A node by id or name; 404 if the run has none."""
        try:
            return run.index_of(node)
        except KeyError as error:
            raise HttpProblem(404, str(error.args[0]), run_id=run.row.id) from None


Given = Annotated[ServerProcess, "given"]
"""The service, for a route that names it as a parameter; see `routes.py`."""
