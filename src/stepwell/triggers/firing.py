"""Fires what is due. Any number of processes may do this on one store, without a leader.

For each trigger: decide (`deciding`), store the decision by compare-and-set, start what it names, store that it was
started. If a process is killed in between, the next one carries out its decision, under the same run ids.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..base.clock import SECOND
from ..base.codec import decode
from ..base.ids import RunId
from ..base.words import one_line
from ..core.model import GetOutputs, GetRun, ListEnded, NodeStatus, PutRecord, RecordPut, RecordRow, RunRow, RunStatus
from ..core.model.outputs import output_of
from ..core.store import Store, reader, versions
from ..errors import InputError, StepwellError, StoreCorrupt, StoreError
from ..history.audit_log import Actor, acting_as
from .deciding import RETRY_AFTER, Decision, decide, next_look
from .definition import Trigger
from .rendering import Start, make_start, run_id_at
from .state import RECORD, TriggerState
from .times import time_text

if TYPE_CHECKING:
    from .kinds import RunFinished

LOOK_BACK = 30 * SECOND
"""How much later than its time the end of a run may become visible."""
KEEP_EVERY = 3_600 * SECOND
"""How often a mark is stored at least, so that a new process has little to read."""


class EndedRun(NamedTuple):
    store: Store
    row: RunRow

    @property
    def at(self) -> int:
        assert self.row.ended_at is not None
        return self.row.ended_at

    @property
    def told(self) -> tuple[str, int]:
        return self.row.id, self.at

    def start_id(self, trigger: str) -> str:
        """The id of the run that follows this end of a run; one that is retried may end again."""
        digest = hashlib.sha256(f"{self.row.id}\0{self.at}".encode()).hexdigest()[:32]
        return f"{trigger}:after-{digest}"

    def names(self, trigger: Trigger) -> dict[str, Any]:
        """What templates may name of it. Outputs are read only if one does."""
        row = self.row
        made = {"id": row.id, "workflow": row.workflow, "status": row.status.value, "input": decode(row.input)}
        if trigger.reads("run", "outputs"):
            made["outputs"] = _outputs(self.store, row.id)
        return made


def _outputs(store: Store, run_id: RunId) -> dict[str, Any]:
    """The outputs of the nodes that completed, by id."""
    names = {node.index: node.id for node in reader.all_nodes(store, run_id, NodeStatus.COMPLETED)}
    found = reader.rows(store, GetOutputs(run_id))
    return {names[index]: decode(output_of(completion.output)) for index, completion in found}


class EndedRuns:
    """The runs of a store that ended, each once for each trigger, as far as this process goes."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._looked: dict[str, int] = {}
        """By trigger: runs that ended up to this time were handled, except those seen late."""
        self._seen: dict[str, set[tuple[str, int]]] = {}

    def since(self, trigger: str, state: TriggerState, when: RunFinished) -> Iterator[EndedRun]:
        """Runs that ended later than the mark, or shortly before: a commit may be seen later than one that came after it."""
        now = self._store.now()
        first = max(state.since, max(state.mark, self._looked.get(trigger, 0)) - LOOK_BACK)
        seen = self._seen.setdefault(trigger, set())
        statuses = tuple(map(RunStatus, when.status))
        self._looked[trigger] = now
        for row in reader.rows(self._store, ListEnded(first, when.workflow, statuses)):
            ended = EndedRun(self._store, row)
            if row.parent is None and ended.told not in seen:
                seen.add(ended.told)
                yield ended
        oldest = self._looked[trigger] - LOOK_BACK
        self._seen[trigger] = {each for each in seen if each[1] >= oldest}

    def hold(self, trigger: str, ended: EndedRun) -> None:
        """Handle this run, and those that ended later, again."""
        self._seen[trigger].discard(ended.told)
        self._looked[trigger] = min(self._looked[trigger], ended.at)

    def mark(self, trigger: str, mark: int, *, changed: bool) -> int:
        """The mark that should be stored: a later one if something is stored anyway, or if it has become old."""
        looked = self._looked[trigger]
        return max(mark, looked) if changed or looked > mark + KEEP_EVERY else mark


log = logging.getLogger("stepwell")

ROUNDS = 20
"""How often in a row one trigger decides before the others have their turn."""
GIVE_UP_AFTER = 86_400 * SECOND
"""After this long, a run that could not be started after an ended run is given up."""
_NEVER = 2**62
LOOK_AGAIN = 5 * SECOND
"""How soon changes of triggers by other processes are noticed."""


class NotHere(StepwellError):
    """This process cannot start a workflow, because its code is elsewhere: another process will."""


class Starter(Protocol):
    def __call__(self, start: Start) -> bool:
        """Start a run; False if it exists already. Raises NotHere, or an error about the workflow or the input."""
        ...


class Firing:
    """Fires the triggers of one store."""

    def __init__(self, store: Store, start: Starter, now: Callable[[], int] | None = None) -> None:
        self._store, self._start = store, start
        self._now = now or store.now
        self._definitions: dict[str, Trigger] = {}
        """By digest: a version never changes."""
        self._ended = EndedRuns(store)
        self._next: dict[str, tuple[int, int]] = {}
        """By name: the version of the record, and when there is something to do for it."""
        self._looked_at = 0
        self._told: set[tuple[str, str]] = set()
        """Messages that were logged already."""

    def fire_due(self) -> int:
        """Fire what is due; returns the microseconds until the next look."""
        now = self._now()
        if now < self._looked_at:  # the clock was set back
            self._next.clear()
        self._looked_at, soonest = now, now + LOOK_AGAIN
        known, self._next = self._next, {}
        for row in reader.all_records(self._store, RECORD):
            version, again = known.get(row.key, (0, 0))
            if version != row.version or again <= now:
                version, again = self._handled(row)
            self._next[row.key] = version, again
            soonest = min(soonest, again)
        return max(0, soonest - self._now())

    def _handled(self, row: RecordRow) -> tuple[int, int]:
        """The version of a record after all that is due was done, and when there is more to do."""
        try:
            version, again = self._handle(row)
            return version, _NEVER if again is None else again
        except StoreError:
            raise
        except Exception as error:  # one that is broken must not hold up the others
            self._tell(row.key, f"trigger {row.key} cannot be looked after: {one_line(str(error))}")
            return row.version, self._now() + LOOK_AGAIN

    def _handle(self, row: RecordRow) -> tuple[int, int | None]:
        """Do what is due for one trigger; returns its version and when there is more to do."""
        current: RecordRow | None = row
        for _ in range(ROUNDS):
            if current is None:
                return 0, self._now()  # another process has changed it: read it again
            state = TriggerState.decoded(current.value)
            trigger = self._definition(row.key, state)
            now = self._now()
            if (followed := trigger.form.followed) is not None:
                return 0, self._after_runs(current, trigger, followed, state)
            if state.pending:
                if state.error is not None and now < (again := next_look(trigger, state, now, busy=False) or now):
                    return current.version, again
                made = self._start_pending(trigger, state)
                if made is None:
                    return current.version, now + RETRY_AFTER
                current = self._put(current, made)
                continue
            busy = self._is_busy(trigger, state, now)
            decision = decide(trigger, state, now, busy=busy)
            if decision.state is state:
                return current.version, next_look(trigger, state, now, busy=busy)
            current = self._put(current, decision.state)
            if current is not None:
                self._explain(trigger, decision)
        return 0, self._now()

    def _definition(self, name: str, state: TriggerState) -> Trigger:
        found = self._definitions.get(state.digest)
        if found is None:
            if len(self._definitions) >= 10_000:
                self._definitions.clear()
            try:
                content = versions.get_content(self._store, "trigger", state.digest)
            except StoreCorrupt:  # only this trigger is broken, not the store
                raise InputError(f"its version {state.version} is not stored") from None
            found = self._definitions[state.digest] = Trigger.stored(content)
        return found

    def _put(self, row: RecordRow, state: TriggerState) -> RecordRow | None:
        """Store a state if the record is unchanged since it was read; None if it was changed."""
        value = state.encoded()
        (receipt,) = self._store.commit([PutRecord(RECORD, row.key, value, expected=row.version)])
        return RecordRow(row.key, receipt.version, value) if isinstance(receipt, RecordPut) else None

    def _is_busy(self, trigger: Trigger, state: TriggerState, now: int) -> bool:
        """Whether the run that was started last has not ended. Only asked where it matters."""
        if trigger.scheduled is None or trigger.scheduled.overlap == "allow":
            return False
        if state.last_run is None or state.paused:
            return False
        if not (state.queue or state.backfills):
            due = next_look(trigger, state, now, busy=False)
            if due is None or due > now:
                return False
        (run,) = self._store.read([GetRun(RunId(state.last_run))])
        return run is not None and not run.status.terminal

    def _start_pending(self, trigger: Trigger, state: TriggerState) -> TriggerState | None:
        """Start what was decided; None if another process must."""
        for time in state.pending:
            run_id = run_id_at(trigger.name, time)
            try:
                with acting_as(Actor(trigger.name, "trigger")):
                    self._start(make_start(trigger, state, run_id, time))
            except NotHere as error:
                self._leave(trigger, error)
                return None
            except StoreError:
                raise
            except StepwellError as error:
                return state.changed(error=self._failed(trigger, "for", time_text(time), error), tried_at=self._now())
            rest = tuple(each for each in state.pending if each != time)
            state = state.changed(
                pending=rest, last_run=run_id, last_time=time, fired=state.fired + 1, error=None, tried_at=0
            )
        return state

    def _after_runs(self, row: RecordRow, trigger: Trigger, when: RunFinished, state: TriggerState) -> int | None:
        """Start what follows ended runs. Starts can be repeated, so none is decided first. The mark stays before a failure."""
        now = self._now()
        if state.paused:
            return None
        if state.error is not None and now < state.tried_at + RETRY_AFTER:
            return state.tried_at + RETRY_AFTER
        made, problem = state, None
        for ended in self._ended.since(row.key, state, when):
            try:
                names = {"run": ended.names(trigger)}
                start = make_start(trigger, state, ended.start_id(trigger.name), ended.at, names)
                with acting_as(Actor(trigger.name, "trigger")):
                    is_new = self._start(start)
            except NotHere as error:
                self._ended.hold(row.key, ended)
                self._leave(trigger, error)
                break
            except StoreError:
                raise
            except StepwellError as error:
                message = self._failed(trigger, "after", f"run {ended.row.id}", error)
                if self._store.now() - ended.at < GIVE_UP_AFTER:
                    self._ended.hold(row.key, ended)
                    problem = problem or message
                else:
                    made = made.changed(left_out=made.left_out + 1)
                continue
            made = made.changed(last_run=start.run_id, last_time=ended.at, fired=made.fired + is_new)
        made = made.changed(error=problem, tried_at=0 if problem is None else now)
        made = made.changed(mark=self._ended.mark(row.key, made.mark, changed=made != state))
        if made != state:
            self._put(row, made)
        return now + SECOND

    def _leave(self, trigger: Trigger, error: NotHere) -> None:
        self._tell(trigger.name, f"trigger {trigger.name} is left to others: {one_line(str(error))}")

    def _failed(self, trigger: Trigger, when: str, what: str, error: StepwellError) -> str:
        """Log that a start did not succeed; what went wrong."""
        message = f"trigger {trigger.name} could not start a run {when} {what}: {one_line(str(error))}"
        self._tell(trigger.name, f"{message}; it is tried again")
        return one_line(f"{what}: {error.public_message}")

    def _explain(self, trigger: Trigger, decision: Decision) -> None:
        policy = trigger.scheduled
        assert policy is not None
        if decision.clock_moved:
            log.warning("trigger %s: the clock was set back; it goes on from now", trigger.name)
        if decision.missed is not None:
            first, last = (time_text(time) for time in decision.missed)
            told = first if first == last else f"{first} to {last}"
            log.warning("trigger %s: missed %s, left out (catch_up=%s)", trigger.name, told, policy.catch_up)
        if decision.skipped:
            what = "the run before is still active" if policy.overlap == "skip" else "too many wait for the run before"
            log.info("trigger %s: %s times left out, %s", trigger.name, decision.skipped, what)

    def _tell(self, name: str, message: str) -> None:
        if (name, message) not in self._told:
            if len(self._told) > 1_000:
                self._told.clear()
            self._told.add((name, message))
            log.warning("%s", message)
