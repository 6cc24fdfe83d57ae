"""Whatever versions a class goes through, and wherever a run stands when it is healed: nothing is lost or done twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from stepwell import Workflow, task
from stepwell.base.clock import ManualClock
from stepwell.core.graph import Graph
from stepwell.core.model import SATISFIED_NODES, Grant, NodeStatus, RunStatus, Settle, Settled
from stepwell.core.store import Store, reader
from stepwell.core.store.memory import MemoryStore
from stepwell.engine.procedures import gates
from stepwell.engine.procedures.procedure import carry_out
from stepwell.engine.reports.audit import audit_run
from tests.conformance.ops import RUN, claim, completed, enlist, failed, released, retried, start, sweep
from tests.simulation.simulate import controls

NAMES = "abcdefgh"
ENDINGS = ("completed", "completed", "completed", "failed", "retried", "released", "left")
REQUESTS = ("nothing", "nothing", "pause", "cancel")


def any_version() -> st.SearchStrategy[tuple[tuple[str, tuple[str, ...]], ...]]:
    """A version of a class: its tasks in order, and what each depends on, some of those written before it."""

    @st.composite
    def version(draw: st.DrawFn) -> tuple[tuple[str, tuple[str, ...]], ...]:
        names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=6, unique=True))
        made = []
        for place, name in enumerate(names):
            above = names[:place]
            chosen = draw(st.lists(st.sampled_from(above), max_size=2, unique=True)) if above else []
            made.append((name, tuple(chosen)))
        return tuple(made)

    return version()


class Progress(NamedTuple):
    """What happens before the next deploy: how so many attempts end, and what somebody asks of the run."""

    endings: Sequence[str]
    request: str


def compiled(version: Sequence[tuple[str, tuple[str, ...]]], renamed: dict[str, str]) -> Graph:
    """The graph of a class with these tasks; `renamed` says what some of them were called before."""

    def body(name: str) -> Any:
        def run(self: Workflow) -> str:
            return name

        run.__name__ = run.__qualname__ = name
        return run

    made = {
        name: task(depends_on=list(above) or None, **({"was": renamed[name]} if name in renamed else {}))(body(name))
        for name, above in version
    }
    return type(Workflow)("Versions", (Workflow,), made).workflow_graph()  # type: ignore[attr-defined]


class Life:
    """A run, what its bodies did, and a check of everything after each thing that happens."""

    def __init__(self, graph: Graph, on_failure: str) -> None:
        self.clock = ManualClock()
        self.store: Store = MemoryStore(clock=self.clock)
        self.graph = start(self.store, graph, on_failure=on_failure)
        self.done: Counter[int] = Counter()
        self.held: list[Grant] = []
        enlist(self.store, seconds=10**6)

    def live(self, progress: Progress) -> None:
        for ending in progress.endings:
            self.work_on(ending)
        if progress.request == "pause":
            carry_out(self.store, controls.pause(RUN))
        elif progress.request == "cancel":
            carry_out(self.store, controls.cancel(RUN, grace=0))
            self.tick()
        self.check()

    def work_on(self, ending: str) -> None:
        """Claim a node and end it so; `left`: it goes on running in some other process."""
        self.tick()
        grants = claim(self.store, limit=1)
        if not grants:
            return
        (grant,) = grants
        self.check_parents(grant)
        if ending == "left":
            self.held.append(grant)
        else:
            self.settle(grant, ending)
        self.check()

    def settle(self, grant: Grant, ending: str) -> None:
        made: dict[str, Settle] = {
            "completed": completed(grant),
            "failed": failed(grant),
            # Without a policy a node is tried again only if it asks for it.
            "retried": retried(grant, 1)._replace(postponed=True),
            "released": released(grant),
        }
        (receipt,) = self.store.commit([made[ending]])
        self.done[grant.index] += ending == "completed" and isinstance(receipt, Settled)

    def tick(self) -> None:
        """Time goes on, and somebody sweeps and finishes what is left held."""
        self.clock.advance(2)
        for _ in range(2):
            for gate in sweep(self.store).gates:
                carry_out(self.store, gates.finish(gate))

    def heal(self, new: Graph) -> None:
        row = reader.require_run(self.store, RUN)
        if row.status is RunStatus.COMPLETED:
            return
        carry_out(self.store, gates.switch_graph(row, self.graph, new, accept=True))
        row = reader.require_run(self.store, RUN)
        document = reader.get_graph(self.store, row.digest)
        assert document is not None
        self.graph = Graph.load(document)
        assert self.graph.follows == new.digest
        self.check()

    def end(self) -> None:
        """Everything that is still running ends well, and somebody asks for whatever has not been done."""
        for grant in self.held:
            self.settle(grant, "completed")
        self.held.clear()
        for _ in range(50):
            self.tick()
            self.check()
            row = reader.require_run(self.store, RUN)
            if row.status is RunStatus.COMPLETED:
                return
            if row.status in (RunStatus.FAILED, RunStatus.CANCELLED, RunStatus.PAUSED):
                carry_out(self.store, controls.retry(RUN))
            for grant in claim(self.store):
                self.check_parents(grant)
                self.settle(grant, "completed")
        raise AssertionError(f"it never ends: {reader.require_run(self.store, RUN)}, {self.rows()}")

    def rows(self) -> list[tuple[str, str, str | None]]:
        return [(row.id, str(row.status), row.reason) for row in reader.all_nodes(self.store, RUN)]

    def check(self) -> None:
        assert audit_run(self.store, RUN) == []
        twice = [self.graph.order[index] for index, times in self.done.items() if times > 1]
        assert not twice, f"done twice: {twice}"

    def check_parents(self, grant: Grant) -> None:
        nodes = reader.all_nodes(self.store, RUN)
        open_parents = [
            nodes[parent].id
            for parent in self.graph.parents[grant.index]
            if nodes[parent].status not in SATISFIED_NODES
        ]
        assert not open_parents, f"{nodes[grant.index].id} started before {open_parents}"
        assert grant.index not in self.graph.removed, f"{nodes[grant.index].id} is gone, and was started"


progress = st.builds(Progress, st.lists(st.sampled_from(ENDINGS), max_size=6), st.sampled_from(REQUESTS))


@st.composite
def renames(
    draw: st.DrawFn, old: Sequence[tuple[str, tuple[str, ...]]], new: Sequence[tuple[str, Any]]
) -> dict[str, str]:
    """Some of what is new was something that is gone."""
    known = {name for name, _ in old}
    gone = [name for name in sorted(known) if name not in {each for each, _ in new}]
    gained = [name for name, _ in new if name not in known]
    return {name: gone.pop(0) for name in gained if gone and draw(st.booleans())}


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    data=st.data(),
    versions=st.lists(any_version(), min_size=2, max_size=4),
    on_failure=st.sampled_from(("fail_fast", "finish", "pause")),
)
def test_nothing_is_lost_or_done_twice(data: st.DataObject, versions: list[Any], on_failure: str) -> None:
    life = Life(compiled(versions[0], {}), on_failure)
    for old, new in pairwise(versions):
        life.live(data.draw(progress, label="progress"))
        life.heal(compiled(new, data.draw(renames(old, new), label="renamed")))
    life.end()
    for row in reader.all_nodes(life.store, RUN):
        if row.index in life.graph.removed:
            continue
        event(f"{row.status} {row.reason or ''}")
        late = row.status is NodeStatus.SKIPPED and row.reason == "healed_late"
        assert late or row.status is NodeStatus.COMPLETED, life.rows()
        assert late or life.done[row.index] == 1, life.rows()
