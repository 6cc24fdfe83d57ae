"""Every error Stepwell raises, in one tree. `stepwell` itself has those that programs catch or raise every day.

StepwellError
├── DefinitionError            a workflow is written wrongly (shows the source line)
│   ├── GraphError             a graph has problems: all of them, at once
│   │   └── DocumentError      a document has problems, each with its line
│   ├── TriggerError           a trigger is written wrongly
│   └── MissingJob             a node names a job that does not exist here
├── InputError                 the input of a run is refused, before anything is stored
│   ├── NotJson                a value cannot be kept as JSON
│   └── BadCassette            a file is no cassette, is damaged, or was written by a newer Stepwell
├── DataMisfit                 what is stored is not what the annotation of its receiver asks for
├── StoreError                 the store cannot do what was asked; nothing was lost
│   ├── StoreBusy              another process holds the store's lock for too long
│   ├── StoreFull              the disk or the allowed space is used up
│   ├── StoreReadOnly          the store's file or folder may not be written
│   ├── SchemaTooNew           the store was written by a newer Stepwell
│   ├── StoreReplaced          what was stored is gone, or was exchanged for something else
│   └── StoreCorrupt           what is stored contradicts itself
├── ServerError                a server cannot be reached, or answers with an error; has `status`
│   └── NotAllowed             the server asks for a token, or for one with a larger scope
├── NotStored                  the store cannot apply this, now or later; everything else goes on
├── RunError                   something about one run; has `run_id`
│   ├── RunNotFound
│   ├── NodeNotFound           the run has no node of this name, or several
│   ├── RunConflict            the run exists already with other content, or its state forbids the request
│   │   └── RunBusy            somebody is just changing the run; in a moment it can be asked again
│   ├── RunFailed              the run ended FAILED; names node, error and how to retry
│   ├── RunCancelled           the run ended CANCELLED
│   ├── RunPaused              the run waits for somebody to decide
│   ├── RunStillActive         waiting ended before the run did
│   └── ReplayMismatch         a replay differs from what was recorded; names node, attempt, effect and the difference
├── PipelineError              something about one pipeline; has `pipeline`
│   ├── PipelineBusy           another process is scanning it
│   ├── OtherRoot              the root of the pipeline is not the one that the work was planned for
│   ├── ManifestError          a manifest cannot be read
│   ├── InvalidOutput          a stage produced what its validation refuses
│   └── InputChanged           an input changed while a stage was reading it
├── UnsafePath                 a path would lead out of its root, or other systems could not keep it
├── StateError                 a delta is refused, or cannot be folded into the state of a run
├── MaskedResponse             a durable effect is not served again, because a secret in its response is not stored
├── EngineClosed               the engine no longer takes work
├── FrozenInstance             a body assigned to `self`
├── UnrecordedCall             a guarded body asked the clock, chance, the network or a program behind the record's back
└── control flow inside bodies
    ├── RetryLater             "try me again in this many seconds"
    ├── TransientError         a failure that may pass: counted, and not tried again before `retry_after`
    ├── PermanentError         a failure that trying again would only repeat, whatever the node's `retry` says
    │   └── MissingSecret      a secret is not here, or not for this service
    └── Stopped                the body was asked to stop, and did
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .base.clock import Duration, in_seconds, utc_text
from .base.commands import command, either
from .base.words import shown

MAX_SHOWN = 100
"""Problems that a message shows; a graph of a million nodes can have as many of them."""


class StepwellError(Exception):
    """The root of every error that Stepwell raises on purpose.

    `str(error)` is for who runs the program: it may say where the store is and what to type there. Clients of a service
    get `error.public_message`.
    """

    _public: str | None = None

    @property
    def public_message(self) -> str:
        """What happened, without URLs and paths of stores and servers, files of code, and commands to type there.

        raise HTTPException(404, error.public_message)
        """
        return str(self) if self._public is None else self._public


class DefinitionError(StepwellError):
    """A workflow is written wrongly. `where` is the file and line of the definition, if it is known."""

    def __init__(self, message: str, *, where: object = None) -> None:
        super().__init__(f"{message}\n  defined at {where}" if where else message)
        self._public = message
        self.where = str(where) if where else None


class GraphError(DefinitionError):
    """A graph has problems. `problems` lists all of them, each with the place it was found at."""

    def __init__(self, problems: Sequence[object], *, where: object = None, what: str = "the graph") -> None:
        self.problems: tuple[Any, ...] = tuple(problems)
        count = "1 problem" if len(self.problems) == 1 else f"{len(self.problems):,} problems"
        lines = "\n".join(f"  - {problem}" for problem in self.problems[:MAX_SHOWN])
        if len(self.problems) > MAX_SHOWN:
            lines += f"\n  - and {len(self.problems) - MAX_SHOWN:,} more, in `problems` of this error"
        super().__init__(f"{what} has {count}:\n{lines}", where=where)


class DocumentError(GraphError):
    """A document has problems. `problems` lists all of them, each with its JSON path, line and column."""

    def __init__(self, source: str, problems: Sequence[Any]) -> None:
        self.source = source
        super().__init__(problems, what=source)


class TriggerError(DefinitionError):
    """A trigger is written wrongly. `problems` lists everything that is wrong with it."""

    def __init__(self, name: object, problems: Sequence[Any]) -> None:
        self.name = name
        self.problems = tuple(problems)
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        lines = "\n".join(f"  - {problem}" for problem in problems)
        super().__init__(f"trigger {name!r} has {count}:\n{lines}")


class MissingJob(DefinitionError):
    """The job of a node cannot be found, or is not registered. `frozen_at` is when the graph of the run was frozen, in seconds
    since 1970; `others` are the jobs of other nodes that are missing too.

    `run_id` and `frozen_at` are None where somebody looks for a job without working on a run, `node` and `node_id` when it is
    the workflow itself, or its state, that is missing. Unless a node was `attempted`, the run is as it was. `lacking`: the
    job is here, and a service or a secret that it needs is not.
    """

    def __init__(
        self,
        reason: str,
        *,
        node: str | None = None,
        node_id: str | None = None,
        job: str | None,
        run_id: str | None = None,
        frozen_at: float | None = None,
        attempted: bool = True,
        others: Sequence[str] = (),
        lacking: bool = False,
    ) -> None:
        named = repr(node) if node == node_id else f"{node!r} ({node_id})"
        what = f"the job of node {named}" if node is not None else "the code"
        of_run = "" if run_id is None else f" of run {run_id}"
        frozen = "" if frozen_at is None else f", which was frozen at {utc_text(frozen_at)},"
        also = ", ".join(others[:5]) + (f" and {len(others) - 5} more" if len(others) > 5 else "")
        more = f" (also missing: {also})" if others else ""
        edit = "`run.export_graph()`, give the node another job, `run.import_graph(...)`"
        ways_out = (
            f"  the graph of the run{frozen} names it, so there are three ways out:\n"
            f"  - restore {job or f'the method {node!r}'} where this worker runs, and `run.retry()`\n"
            f"  - give up: `run.cancel()`, if other nodes of it still run\n"
            f"  - edit the graph: {edit}, `run.retry()`"
            if attempted
            else f"  nothing was attempted and the run is as it was; its graph{frozen} can be edited: {edit}"
            if frozen_at is not None
            else "  nothing was run"
        )
        message = f"node {named}{of_run} cannot run here" if lacking else f"{what}{of_run} is missing"
        super().__init__(f"{message}: {reason}{more}\n{ways_out}")
        self.reason = reason
        self.node = node
        self.node_id = node_id
        self.job = job
        self.run_id = run_id
        self.frozen_at = frozen_at
        self.attempted = attempted
        self.others = tuple(others)
        self.lacking = lacking

    def with_facts(self, **facts: Any) -> MissingJob:
        """The same error, with facts that who looked for the job did not know, such as its run."""
        names = "reason", "node", "node_id", "job", "run_id", "frozen_at", "attempted", "others", "lacking"
        return MissingJob(**{name: getattr(self, name) for name in names} | facts)


class InputError(StepwellError):
    """The input of a run is refused. Nothing was stored."""


class NotJson(InputError):
    """A value cannot be kept as JSON. `path` says where in the value the trouble is, `place` the same in steps."""

    def __init__(self, message: str, *, path: str = "$", place: tuple[str | int, ...] = ()) -> None:
        super().__init__(f"{message} (at {path})")
        self.message = message
        self.path = path
        self.place = place


class DataMisfit(StepwellError):
    """Stored data does not fit the annotation of its receiver. `problems` says where, as JSON paths."""

    def __init__(self, what: str, needed: str, problems: Sequence[str]) -> None:
        message = "; ".join(problems[:MAX_SHOWN])
        super().__init__(f"{what} asks for {needed}, and what is stored does not fit: {message}")
        self.what = what
        self.needed = needed
        self.problems = tuple(problems)


class BadCassette(InputError):
    """A file cannot be replayed. `problems` lists why, each with its JSON path."""

    def __init__(self, source: str, problems: Sequence[str]) -> None:
        self.source = source
        self.problems = tuple(problems)
        lines = "\n".join(f"  - {problem}" for problem in self.problems[:MAX_SHOWN])
        super().__init__(f"{source} cannot be replayed:\n{lines}\n  `run.export(...)` of a run writes such a file")


class StoreError(StepwellError):
    """The store cannot do what was asked. Nothing that was acknowledged is lost."""

    _public = "the store cannot be used at the moment"


class StoreBusy(StoreError):
    """Another process has held the write lock of the store for too long."""

    _public = "the store is busy; try again in a moment"


class StoreFull(StoreError):
    """There is no space left for the store."""

    _public = "the store is full; nothing was written"


class StoreReadOnly(StoreError):
    """The store's file or folder may not be written."""

    _public = "the store cannot be written at the moment; nothing was written"


class SchemaTooNew(StoreError):
    """The store was written by a newer version of Stepwell."""

    _public = "the store is of another version"


class StoreReplaced(StoreError):
    """What was stored is gone or was exchanged for something else: the server was flushed, restored, or is another one."""


class StoreCorrupt(StoreError):
    """What is stored contradicts itself."""

    _public = "what is stored is damaged"


class ServerError(StepwellError):
    """A server cannot be reached, or refuses what was asked. `status` is that of HTTP, None if there was no answer."""

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self._public = (
            "the server cannot be used at the moment" if status is None else f"the server answered with {status}"
        )
        self.status = status


class NotAllowed(ServerError):
    """The server asks for a token, or for one with a larger scope."""


class NotStored(StepwellError):
    """The store cannot apply an op, now or later. Everything else goes on."""

    _public = "the store cannot apply this: what is stored may be damaged"


class RunError(StepwellError):
    """Something about one run."""

    def __init__(self, message: str, *, run_id: str) -> None:
        super().__init__(message)
        self.run_id = run_id


class RunNotFound(RunError):
    """There is no run with this id in this store."""

    def __init__(self, run_id: str, hint: str = "", *, store: str | None = None) -> None:
        listing = command("ls", store) or "engine.runs()"
        message = f"no run {shown(run_id)} in this store; `{listing}` lists the runs there are"
        super().__init__(f"{message}; {hint}" if hint else message, run_id=run_id)
        self._public = f"there is no run {shown(run_id)}"


class NodeNotFound(RunError, KeyError):
    """The run has no node of this name, or several. `node` is what was asked for."""

    def __init__(self, message: str, *, run_id: str, node: str) -> None:
        super().__init__(message, run_id=run_id)
        self.node = node

    def __str__(self) -> str:
        return str(self.args[0])


class RunConflict(RunError):
    """The run exists with other content, or its present state forbids what was asked."""


class RunBusy(RunConflict):
    """Another process is changing the run, or died while doing so. Try again in a moment."""


class RunFailed(RunError):
    """The run ended FAILED. `node`, `error_type` and `error_message` describe the first failure."""

    def __init__(
        self,
        run_id: str,
        *,
        node: str,
        attempt: int,
        error_type: str,
        error_message: str,
        others: int = 0,
        store: str | None = None,
    ) -> None:
        more = f" (and {others} more failed)" if others else ""
        self.details = f"attempt {attempt}: {error_type}: {error_message}{more}"
        # Attempt 0 is none: the run as a whole failed.
        self.told = (
            f"run {run_id} failed at node {node!r}, {self.details}"
            if attempt
            else f"run {run_id} failed: {error_message}"
        )
        """What happened, without what to do."""
        super().__init__(
            f"{self.told}\n"
            f"  completed nodes are kept; {either('run.retry()', f'retry {run_id}', store)} runs only what did not complete",
            run_id=run_id,
        )
        self._public = self.told
        self.node = node
        self.attempt = attempt
        self.error_type = error_type
        self.error_message = error_message


class RunCancelled(RunError):
    """The run ended CANCELLED."""

    def __init__(self, run_id: str, *, store: str | None = None) -> None:
        again = either("run.retry()", f"retry {run_id}", store)
        super().__init__(f"run {run_id} was cancelled; {again} runs what did not complete", run_id=run_id)
        self._public = f"run {run_id} was cancelled"


class RunPaused(RunError):
    """The run is PAUSED and waits for a decision. `reason` says why.

    If a failure has paused it, `node`, `attempt`, `error_type` and `error_message` describe the first one.
    """

    def __init__(self, run_id: str, reason: str, *, failure: RunFailed | None = None, store: str | None = None) -> None:
        self.reason = reason
        self.node = None if failure is None else failure.node
        self.attempt = None if failure is None else failure.attempt
        self.error_type = None if failure is None else failure.error_type
        self.error_message = None if failure is None else failure.error_message
        self.told = reason if reason != "node_failed" else "a node failed"
        """The reason, for people."""
        if failure is not None and failure.attempt:
            self.told = f"node {failure.node!r} failed, {failure.details}"
        ways_out = "`run.retry()` runs again what failed, `run.resume()` goes on without it; "
        super().__init__(
            f"run {run_id} is paused: {self.told}\n"
            f"  {ways_out if reason == 'node_failed' else ''}{either('run.why()', f'why {run_id}', store)} says more",
            run_id=run_id,
        )
        self._public = f"run {run_id} is paused: {self.told}"


class RunStillActive(RunError, TimeoutError):
    """Waiting ended before the run did. The run goes on. `told` is what happened, without what to do."""

    def __init__(self, message: str, *, run_id: str, told: str | None = None) -> None:
        super().__init__(message, run_id=run_id)
        self._public = told


class ReplayMismatch(RunError):
    """A replay differs from what was recorded: the first difference, which ends the replay.

    `effect` is the index of the effect among those of the attempt (-1: what `ctx.now()` gave); None when it is the output that
    differs, or the graph: then `node` is None too. `diff` has a line for each place that differs.
    """

    def __init__(
        self,
        what: str,
        *,
        run_id: str,
        node: str | None = None,
        attempt: int | None = None,
        effect: int | None = None,
        diff: Sequence[str] = (),
    ) -> None:
        place = "" if node is None else f" at node {node!r}, attempt {attempt}"
        if effect is not None:
            place += f", effect {effect}" if effect >= 0 else ", ctx.now()"
        super().__init__("\n  ".join((f"the replay of run {run_id} differs{place}: {what}", *diff)), run_id=run_id)
        self.what = what
        self.node = node
        self.attempt = attempt
        self.effect = effect
        self.diff = tuple(diff)


class UnsafePath(StepwellError):
    """A path, or the value of a variable in one, is refused. `path` is what was given."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"the path {shown(path)} is refused: {problem}")
        self.path = path
        self.problem = problem


class PipelineError(StepwellError):
    """Something about one pipeline."""

    def __init__(self, message: str, *, pipeline: str) -> None:
        super().__init__(message)
        self.pipeline = pipeline


class PipelineBusy(PipelineError):
    """Another process is scanning the pipeline, and did not end in time."""


class OtherRoot(PipelineError):
    """The root of the pipeline is not the one that the work was planned for."""

    _public = "the root of the pipeline is not the one that the work was planned for"


class ManifestError(PipelineError):
    """A manifest cannot be read. `path` says which."""

    def __init__(self, message: str, *, pipeline: str, path: str) -> None:
        super().__init__(message, pipeline=pipeline)
        self._public = f"a manifest of pipeline {pipeline} cannot be read"
        self.path = path


class InvalidOutput(PipelineError):
    """A stage produced what its validation refuses. Nothing was recorded."""


class InputChanged(PipelineError):
    """An input changed while a stage was reading it. Nothing was recorded; the stage runs again."""


class StateError(StepwellError):
    """A delta is refused, or cannot be folded into the state. `field` and `node` (whose delta it is) if it is one."""

    def __init__(self, message: str, *, field: str | None = None, node: str | None = None) -> None:
        super().__init__(message)
        self.field = field
        self.node = node


class MaskedResponse(StepwellError):
    """A durable effect was done by an earlier attempt and its response held a secret. `response` has `***` in its place."""

    def __init__(self, message: str, *, response: Any = None) -> None:
        super().__init__(message)
        self.response = response


class EngineClosed(StepwellError):
    """The engine is closed and takes no more work."""


class FrozenInstance(StepwellError, AttributeError):
    """A body assigned to an attribute of `self`."""

    def __init__(self, workflow: str, name: str) -> None:
        super().__init__(
            f"{workflow}.{name} cannot be assigned inside a body: every attempt has its own frozen instance, so the "
            f"value would be lost. Return it (descendants receive it as a parameter named like this node), or add "
            f"metadata with ctx.outcome[{name!r}] = ..."
        )


class UnrecordedCall(StepwellError):
    """A guarded body called something whose answer is not recorded. `function` is what it called, `where` file and line."""

    def __init__(self, function: str, *, node: str, where: str, instead: str, through: str | None = None) -> None:
        by = f", through {through}," if through else ""
        super().__init__(
            f"node {node!r} called {function} at {where}{by} and its answer is not recorded, so a replay could not repeat "
            f"it: {instead}"
        )
        self.function = function
        self.node = node
        self.where = where
        self.instead = instead


class RetryLater(StepwellError):
    """Raise it in a body to be tried again after `seconds`, whatever the node's `retry` says; that is no failure.

    A node may ask so `limit` times in all; when it asks once more it has failed.
    """

    LIMIT = 1_000

    def __init__(self, seconds: Duration, message: str = "", *, limit: int = LIMIT) -> None:
        self.seconds = float(in_seconds(seconds))
        if not self.seconds >= 0:
            raise ValueError(f"RetryLater({seconds!r}): expected a number of seconds from 0")
        if not isinstance(limit, int) or limit < 1:
            raise ValueError(f"RetryLater(..., limit={shown(limit)}): expected a whole number from 1")
        self.limit = limit
        super().__init__(message or f"asked to be retried in {in_seconds(seconds)} s")


class TransientError(StepwellError):
    """Raise it in a body for a failure that may pass: the node's `retry` applies, after at least `retry_after` seconds."""

    def __init__(self, message: str, *, retry_after: Duration | None = None) -> None:
        super().__init__(message)
        self.retry_after = None if retry_after is None else float(in_seconds(retry_after))
        if self.retry_after is not None and not self.retry_after >= 0:
            raise ValueError(f"retry_after={retry_after!r}: expected a number of seconds from 0")


class PermanentError(StepwellError):
    """Raise it in a body for a failure that would only be repeated: the node has failed, whatever its `retry` says."""


class MissingSecret(PermanentError):
    """A required secret is not here. `name` is what it is called, `reason` says what is wrong and what to do."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(reason)
        self.name = name
        self.reason = reason


class Stopped(StepwellError):
    """Raised by `ctx.check()` when the attempt was asked to stop."""
