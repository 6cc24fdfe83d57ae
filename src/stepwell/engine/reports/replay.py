"""Replay: runs the bodies of a run again, in order, in one thread, and answers everything they ask from the record.

No engine is involved and nothing is stored. Only completed attempts are replayed: a failed one need not be repeatable, and
nothing depends on it.
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias, cast

from ...base.codec import decode
from ...base.ids import AttemptId, Digest, RunId
from ...base.masking import mask
from ...core.graph import Graph, NodeSpec
from ...core.model.outputs import Completion
from ...core.store import Store
from ...define import Bodies, Finder, NotRegistered, Registry, Workflow, bodies_for
from ...define.code.bodies import load_class
from ...errors import MissingJob, ReplayMismatch, UnrecordedCall
from ...handlers import Handlers
from ...history.differences import differences, graph_differences
from ...history.effects.record import with_masked_requests
from ...history.effects.recorder import inside
from ...history.effects.repeatable import Outside
from ...history.replay.cassette import masked_output, parts
from ...history.replay.player import Player, Subject
from ...history.replay.recorded import Given, RecordedNode, RecordedRun, read_recorded
from ..bodies.attempt import AnyCoroutine, Course, leave_body
from ..bodies.held import Held, RunFacts
from ..bodies.host import EngineHost, Services
from ..bodies.log_lines import UnstoredLines
from ..bodies.raised import Raised
from ..bodies.visible_state import ReadOutputs
from ..checking import checked_modules
from ..code.code import Code

if TYPE_CHECKING:
    from ...answers.reports import ReplayRecord

NOTHING_REPEATABLE = (
    "no body was executed, so nothing was compared. A body is run again when its node says that it may be: "
    '@step(side_effects="pure"), or "recordable" if it asks the outside through ctx. For every node that says nothing: '
    'class Order(Workflow, side_effects="recordable"), or Builder("order", side_effects="recordable")'
)


Report: TypeAlias = Callable[[int, int], None]
"""Called with the number of nodes that were replayed, and of all; what it raises ends the replay."""


def _unreported(done: int, total: int) -> None:
    return None


class Replayed(NamedTuple):
    """The report of a replay that found no difference."""

    run_id: str
    executed: tuple[str, ...]
    """The nodes whose bodies were run again, in order."""
    stubbed: Mapping[str, str]
    """The nodes whose outputs came from the record, and why."""
    effects: int
    """Effects that were served."""
    seconds: float

    def __str__(self) -> str:
        message = (
            f"replayed run {self.run_id}: {len(self.executed)} executed, {len(self.stubbed)} stubbed, "
            f"{self.effects} effects served, in {self.seconds:.3f} s"
        )
        return message if self.executed else f"{message}\n{NOTHING_REPEATABLE}"

    def to_dict(self) -> ReplayRecord:
        fields = self._asdict() | {"executed": list(self.executed), "stubbed": dict(self.stubbed)}
        return cast("ReplayRecord", fields)


def replay_run(store: Store, code: Code, run_id: RunId, report: Report = _unreported) -> Replayed:
    """Replay a stored run with the code that an engine has; `report` is called before each node."""

    def load(digest: Digest) -> Graph:
        return code.graphs.get(digest, run_id)

    started = time.perf_counter()
    recorded = read_recorded(store, run_id, load)
    workflow, target, graph = recorded.workflow, recorded.target, recorded.graph
    today = None if graph.follows is None else code.today(workflow, target)
    bodies = code.bodies(workflow, target, graph)
    if bodies.restricted:
        _check_registered(recorded, bodies)
    return replay(recorded, bodies, today, started, report)


def replay_cassette(
    recorded: RecordedRun,
    workflow: type[Workflow] | None = None,
    *,
    jobs: Iterable[str] = (),
    handlers: Handlers | None = None,
) -> Replayed:
    """Replay a cassette with a class, or with what it names in allowed modules.

    `handlers` are those that its nodes may name besides the built-in ones. Services and secrets are not needed.

    Its author chose what it names: MissingJob says what is not registered, before anything is imported or run.
    """
    registry = Registry(checked_modules(jobs))
    cls = workflow
    if cls is None and recorded.target is not None:
        cls = _class_at(recorded.target, recorded.run_id, registry.for_data)
    if cls is not None:
        registry.add_workflow(cls)
    bodies = bodies_for(cls, recorded.graph.state, registry.for_data if cls is None else registry, handlers)
    _check_registered(recorded, bodies)
    return replay(recorded, bodies, None if cls is None else cls.workflow_graph())


def _class_at(target: str, run_id: RunId, finder: Finder) -> type[Workflow]:
    try:
        return load_class(target, finder)
    except NotRegistered as error:
        raise MissingJob(str(error), job=target, run_id=run_id, attempted=False) from None


def _check_registered(recorded: RecordedRun, bodies: Bodies) -> None:
    """MissingJob for what is not registered. Code that is missing for another reason is reported as a difference."""
    executed = [node for node in recorded.nodes if _stub(recorded, node) is None]
    specs = [node.graph.in_order[node.index] for node in executed]
    for missing in bodies.missing(specs) if specs else ():
        if isinstance(missing.__cause__, NotRegistered):
            raise missing.with_facts(run_id=recorded.run_id, attempted=False)


def _stub(recorded: RecordedRun, node: RecordedNode) -> str | None:
    """Why a body is not run again."""
    if node.stub is not None:
        return node.stub
    if node.index in recorded.graph.removed:
        return "removed from the graph since"
    return "opaque" if node.graph.in_order[node.index].side_effects == "opaque" else None


def replay(
    recorded: RecordedRun,
    bodies: Bodies,
    today: Graph | None = None,
    started: float | None = None,
    report: Report = _unreported,
) -> Replayed:
    """Replay what is recorded; the first difference raises ReplayMismatch.

    `today` is the graph that the class gives now, None when that of the run was frozen.
    """
    started = time.perf_counter() if started is None else started
    if today is not None and recorded.graph.follows not in (None, today.digest):
        what = f"the graph of {recorded.workflow} is not the one it was recorded with"
        raise ReplayMismatch(what, run_id=recorded.run_id, diff=graph_differences(recorded.graph, today))
    # In a context of its own: the caller may be a body itself.
    context, replaying = contextvars.copy_context(), _Replay(recorded, bodies, report)
    # Inside `async def`, or in a notebook, a thread of its own: bodies may run loops themselves.
    if asyncio._get_running_loop() is None:
        return context.run(replaying.perform, started)
    thread = ThreadPoolExecutor(1, thread_name_prefix="stepwell-replay")
    try:
        return thread.submit(context.run, replaying.perform, started).result()
    finally:
        thread.shutdown(wait=False)  # an interrupt must not wait


class _Replay:
    def __init__(self, recorded: RecordedRun, bodies: Bodies, report: Report) -> None:
        self._recorded = recorded
        self._report = report
        self._bodies = bodies
        self._outputs = {
            node.index: Completion(node.attempt, node.output) for node in recorded.nodes if not node.skipped
        }
        self._facts: dict[tuple[str, str, Given], RunFacts] = {}
        self._lines = UnstoredLines()
        self._loop = _Loop()

    def perform(self, started: float) -> Replayed:
        executed: list[str] = []
        stubbed: dict[str, str] = {}
        effects = 0
        inside.set(False)
        try:
            for number, node in enumerate(self._recorded.nodes):
                self._report(number, len(self._recorded.nodes))
                spec = self._recorded.graph.in_order[node.index]
                stub = _stub(self._recorded, node)
                if stub is not None:
                    stubbed[spec.id] = stub
                    continue
                effects += self._execute(node, spec)
                executed.append(spec.id)
        finally:
            leave_body()
            self._loop.close()
        seconds = time.perf_counter() - started
        return Replayed(self._recorded.run_id, tuple(executed), stubbed, effects, seconds)

    def _execute(self, node: RecordedNode, spec: NodeSpec) -> int:
        """Run one body again; how many effects it was served."""
        subject = Subject(self._recorded.run_id, spec.name, node.attempt)
        read = self._reading(node)
        facts = self._facts_of(node)
        needed = [node.graph.index[each] for each in node.graph.in_order[node.index].needs]
        # Removed ones first: another node may have the name of one now, and the present code means that node.
        needed.sort(key=lambda index: (index not in self._recorded.graph.removed, index))
        inputs = tuple((index, found.output) for index, found in read(node.run_id, tuple(needed)).items())
        held = Held(AttemptId(""), facts, node.index, node.attempt, 0, inputs, node.generation)
        host = RecordHost(held, Services(read, self._lines), subject, node)
        output = ReplayedAttempt(host).perform_all(self._loop.run)
        if node.skipped is not (output is None):
            now, then = ("holds", "did not") if node.skipped else ("does not hold", "did")
            raise subject.differs(f"its condition {now}; when it was recorded it {then}")
        if output is not None:
            _compare(subject, output, node.output)
        player = host.player()
        return 0 if player is None else player.served

    def _reading(self, node: RecordedNode) -> ReadOutputs:
        """A reader of outputs as they were when the attempt began."""
        given = {index: Completion(0, output) for index, output in node.given}
        outputs = ChainMap(given, self._outputs) if given else self._outputs

        def read(run_id: RunId, indexes: tuple[int, ...]) -> Mapping[int, Completion]:
            return {index: outputs[index] for index in indexes if index in outputs}

        return read

    def _facts_of(self, node: RecordedNode) -> RunFacts:
        """What the body is told of the run, with the graph that it had when the attempt began."""
        recorded, graph = self._recorded, node.graph
        place = (graph.digest, node.run_id, node.given)
        facts = self._facts.get(place)
        if facts is None:
            facts = self._facts[place] = RunFacts(
                node.run_id, recorded.workflow, recorded.target, graph, node.input, recorded.seed, self._bodies
            )
            if graph.digest != recorded.graph.digest:
                facts.specs = _renamed(graph, recorded.graph)
        return facts


def _renamed(then: Graph, now: Graph) -> tuple[NodeSpec, ...]:
    """The nodes of an earlier graph under their present names, which the present code has."""
    return tuple(
        spec._replace(
            id=now.order[index],
            name=now.in_order[index].name,
            needs=tuple(now.order[then.index[need]] for need in spec.needs),
        )
        for index, spec in enumerate(then.in_order)
    )


class RecordHost(EngineHost):
    """Answers `ctx` from the record. What a body logs is not kept, and it is never asked to stop."""

    __slots__ = ("_effects", "_player", "subject")
    replays = True

    def __init__(self, held: Held, services: Services, subject: Subject, node: RecordedNode) -> None:
        super().__init__(held, services)
        self.subject = subject
        self._effects = node.effects
        self._player: Player | None = None

    def outside(self) -> Outside:
        # What the body asks is masked with the secrets that are known now.
        self._player = Player(self.subject, with_masked_requests(self._effects))
        return self._player

    def player(self) -> Player | None:
        """The player that answered the body; None when nothing was recorded and nothing asked."""
        if self._player is None and self._effects:
            self.outside()
        return self._player

    def output(self) -> None:
        return None

    def stopping(self) -> bool:
        return False


class ReplayedAttempt(Course[bytes | None]):
    """Runs an attempt again: gives its output, None if its condition does not hold, or raises ReplayMismatch.

    The guard is on everywhere: nothing that the body did may happen again, in whatever thread.
    """

    __slots__ = ("_refused",)
    guarded_everywhere = True
    host: RecordHost

    def __init__(self, host: RecordHost) -> None:
        super().__init__(host, guarded=True)
        self._refused: ReplayMismatch | None = None

    def returned(self, result: object) -> bytes | None:
        player = self.host.player()
        if player is not None:
            player.finish()
        return super().returned(result)

    def not_kept(self, error: BaseException) -> NoReturn:
        what = Raised.of(error).message
        self._refused = self.host.subject.differs(f"its body returned what cannot be kept: {what}")
        raise self._refused

    def raised(self, error: BaseException) -> NoReturn:
        """The recorded attempt had completed, so this is a difference. SystemExit must not end the replay either."""
        self.context._leave()
        if isinstance(error, KeyboardInterrupt):
            raise error
        difference = self._difference(error)
        raise difference from None if difference is error else error

    def _difference(self, error: BaseException) -> ReplayMismatch:
        player, subject = self.host.player(), self.host.subject
        if player is not None and player.mismatch is not None:
            return player.mismatch
        if self._refused is not None:
            return self._refused
        if isinstance(error, MissingJob):
            return subject.differs(f"its job is missing: {mask(error.reason)}")
        if isinstance(error, UnrecordedCall):
            return subject.differs(mask(str(error)))
        raised = Raised.of(error)
        return subject.differs(
            f"its body raised {raised.type}: {raised.message}; when it was recorded it returned",
            diff=raised.traceback.rstrip().splitlines()[-6:],
        )

    def _completed(self, output: bytes, outcome: bytes | None) -> bytes:
        return output

    def _skipped(self) -> None:
        return None

    def _handed_over(self, workflow: object) -> NoReturn:
        raise self.host.subject.differs("its body returned a workflow; when it was recorded it returned an output")

    def _failed(self, raised: Raised, outcome: bytes | None) -> NoReturn:
        raise AssertionError("`raised` raises")


def _compare(subject: Subject, output: bytes, recorded: bytes) -> None:
    if output == recorded:
        return
    # A cassette has no secrets in it, so outputs are compared, and shown, without them.
    before, after = masked_output(recorded), masked_output(output)
    for part, then, now in zip(("output", "delta"), parts(before), parts(after), strict=True):
        if then != now:
            diff = differences(*(None if each is None else decode(each) for each in (then, now)))
            raise subject.differs(f"its {part} is not the one that was recorded", diff=diff)


class _Loop:
    """Runs `async def` bodies, one after the other. The guard also watches when tasks that they left behind are ended."""

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None

    def run(self, coroutine: AnyCoroutine) -> Any:
        """What a body returns in the end."""
        from ...history.guarding.guard import watched_thread

        if self._runner is None:
            self._runner = asyncio.Runner()
        with watched_thread():
            return self._runner.run(coroutine, context=contextvars.copy_context())

    def close(self) -> None:
        if self._runner is not None:
            from ...history.guarding.guard import watched_thread

            with watched_thread():
                self._runner.close()
