"""`PipelineDefinition`: the name of a pipeline, its stages and triggers, and where its states are."""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, Unpack
from weakref import WeakValueDictionary

from ..base.clock import POSITIVE_SECONDS_NEEDED, Duration, in_seconds, is_seconds
from ..base.importable import importable_name
from ..base.place import caller
from ..base.words import shown
from ..errors import DefinitionError
from .codehash.stages import StageCodes
from .patterns.paths import name_problem
from .stage import BACK_OFF, Stage, make_stage
from .staleness.connections import Connections, connect
from .states.files.store import FileStates
from .states.notes import noted_types

if TYPE_CHECKING:
    from ..core.graph import JobOptions
    from ..handlers import Handlers
    from .building.arguments import BodyParameters
    from .patterns.pattern import Pattern
    from .states.port import StateStore
    from .trigger import OwnTrigger, Watched

    TypesOfPipelines: TypeAlias = Mapping[str, Mapping[str, str]]
    """The patterns of the states that pipelines make, by pipeline and type."""

Function = TypeVar("Function", bound=Callable[..., Any])
DATABASES = ("sqlite:///", "postgresql://", "postgres://")


class PipelineDefinition:
    """What a pipeline is, and how to write one. Code that reads or builds it knows this class; users get `Pipeline`."""

    def __init__(
        self,
        name: str,
        *,
        root: str | os.PathLike[str] = "output",
        scan_interval: Duration = 60.0,
        back_off: Iterable[Duration] = BACK_OFF,
        limit: int | None = None,
        clock: Callable[[], float] = time.time,
        home: str | None = None,
        handlers: Handlers | None = None,
    ) -> None:
        self.place = caller()
        problem = name_problem(name) if isinstance(name, str) else "expected some text"
        if problem is not None or "#" in name:
            message = f"{shown(name)} cannot be the name of a pipeline: {problem or 'no # is allowed'}"
            raise DefinitionError(message, where=str(self.place))
        interval = in_seconds(scan_interval)
        if not is_seconds(interval, positive=True):
            message = f"scan_interval={shown(scan_interval)}: expected {POSITIVE_SECONDS_NEEDED}"
            raise DefinitionError(message, where=str(self.place))
        self.name = name
        self.home = home or _calling_module()
        """The module that another process imports to have this pipeline, or the file of its document."""
        self.scan_interval = float(interval)
        self.back_off = tuple(back_off)
        self.limit = limit
        self.clock = clock
        self.handlers = handlers
        """The handlers that stages may name; by default those of the settings and of Stepwell itself."""
        self.stages: dict[str, Stage] = {}
        self.triggers: dict[str, OwnTrigger] = {}
        self.state_types: dict[str, str] = {}
        """The patterns of states that a document calls by another name than that of their stage."""
        self.beside: WeakValueDictionary[str, PipelineDefinition] = WeakValueDictionary()
        """The pipelines of its root that were given together with it, by name."""
        self.other_types: TypesOfPipelines = {}
        """What the other pipelines of its root made when it was last looked for: another object after each change."""
        self.read_again: Callable[[TypesOfPipelines], PipelineDefinition] | None = None
        """Reads its document again, if that names states of other pipelines by type."""
        self.unknown_reads: dict[str, str] = {}
        """Nodes of a document that read states of a type that no pipeline is known to make, and that type."""
        self._watched: dict[str, Watched] = {}
        self.connections = Connections((), {})
        self.root = checked_root(os.fspath(root))
        self.signatures: dict[str, BodyParameters] = {}
        """What the body of each stage takes."""
        # It does not know the pipeline, so that a pipeline nobody holds any more is freed at once.
        self._states = functools.cache(functools.partial(open_states, self.root, name))
        self.code = StageCodes(name, self.stages, self.triggers, self._states, (PipelineDefinition,))

    def __repr__(self) -> str:
        return f"<Pipeline {self.name}>"

    @property
    def store(self) -> StateStore:
        """The store of its states. A database is opened at its first use."""
        return self._states()

    def stage(
        self,
        name: str | None = None,
        *,
        input: str | Mapping[str, str] | None = None,
        output: str | Mapping[str, str],
        handler: str | None = None,
        collect: str | Iterable[str] | None = None,
        config: Mapping[str, Any] | None = None,
        entities: Callable[[], Iterable[Any]] | None = None,
        filter: str | Mapping[str, str] | None = None,
        min_size: int = 0,
        validate: Callable[..., Any] | None = None,
        quiet: Duration = 0.0,
        priority: int = 0,
        limit: int | None = None,
        back_off: Iterable[Duration] | None = None,
        version: str | None = None,
        uses: Iterable[Any] = (),
        **options: Unpack[JobOptions],
    ) -> Callable[[Function], Function]:
        """Make a function a stage. The function itself does not change: call and test it like any other.

            @blog.stage(input="daily/{date}.txt", output="summary/{date}.txt")
            def summary(text: str) -> str: ...

        With a `handler` there is no function: `config` says what it does, in templates over `entity` and the inputs.

            blog.stage("title", handler="llm", input="summary/{date}.txt", output="title/{date}.txt",
                       config={"prompt": "A title for {{ input.content }}"})
        """
        place = caller()
        given: dict[str, Any] = {
            key: value for key, value in locals().items() if key not in ("self", "name", "handler")
        }
        if back_off is None:
            given["back_off"] = self.back_off

        def add(function: Function) -> Function:
            if handler is not None:
                message = f"stage {name!r} runs the handler {handler!r}, so it takes no function: leave one of them out"
                raise DefinitionError(message, where=str(place))
            self.add(make_stage(name or function.__name__, function=function, **given))
            return function

        if handler is not None:
            from .document.bodies import handled_stage

            self.add(*handled_stage(name, handler, self.handlers, given))
        return add

    def add(self, stage: Stage, signature: BodyParameters | None = None) -> None:
        """Add a stage that was made elsewhere."""
        from .building.arguments import signature_of

        self.add_all([(stage, signature or signature_of(stage))])

    def add_all(self, stages: Sequence[tuple[Stage, BodyParameters]]) -> None:
        """Add the stages of a document. All are connected at once: connecting compares each with every other one."""
        for stage, _ in stages:
            if stage.name in self.stages:
                raise DefinitionError(
                    f"pipeline {self.name!r} has a stage {stage.name!r} already; give this one another name: stage(name=...)",
                    where=str(stage.place),
                )
            if stage.options:
                from ..define.options import checked_options

                checked_options(stage.place or self.place, stage.options)  # type: ignore[arg-type]
            self.code.check(stage)
        self.connections = connect([*self.stages.values(), *(stage for stage, _ in stages)], self.name)
        self.signatures.update((stage.name, signature) for stage, signature in stages)
        self.stages.update((stage.name, stage) for stage, _ in stages)

    def trigger(
        self,
        name: str,
        *,
        state: str,
        workflow: Any,
        filter: str | None = None,
        existing: bool = False,
        input: Any = None,
    ) -> None:
        """Start a workflow once for each new state: `Trigger(name, workflow, state={...})` as a part of this pipeline.

        `state` is a stage, of this pipeline or another one of its root, or a pattern. `workflow` is what a Trigger may name, or
        a Document, or a function that makes a workflow of the event. `filter` is an expression over `code_hash`,
        `current_code_hash`, `content_hash`, `entity`, `state_type` and `path`. States that were fresh before the first build
        with this trigger count only with `existing`.
        """
        from .trigger import make_trigger

        if name in self.triggers:
            raise DefinitionError(f"pipeline {self.name!r} has a trigger {name!r} already", where=str(caller()))
        if workflow is None:
            raise DefinitionError(f"trigger {name!r} starts nothing: workflow=None", where=str(caller()))
        self.triggers[name] = make_trigger(
            name, self.name, state, workflow, stages=self.stages, filter=filter, existing=existing, input=input
        )

    def look(self) -> None:
        """Find out anew which code runs here, and which states the other pipelines of the root make."""
        self.code.refresh()
        self.look_for_types()

    def look_for_types(self) -> None:
        """Find out anew which states the other pipelines of the root make. A document that names some by type is read again if
        that has changed.
        """
        types = self.types_of_others()
        if types != self.other_types:
            if self.read_again is not None:
                self._update(self.read_again(types))
            self.other_types = types
        self._watched = {}

    def give_beside(self, pipelines: Iterable[PipelineDefinition]) -> None:
        """Let this pipeline find the states of others that were given together with it, if they have the same root."""
        self.beside.update({each.name: each for each in pipelines if each.root == self.root and each.name != self.name})

    def types_of_others(self) -> TypesOfPipelines:
        """What pipelines make that were given together with this one, or that were built in its root."""
        is_open = self._states.cache_info().currsize > 0
        noted = noted_types(self.store.notes) if is_open or has_states(self.root) else {}
        given = {name: pipeline.own_types() for name, pipeline in self.beside.items()}
        return given | {name: types for name, types in noted.items() if name not in (self.name, *given)}

    def _update(self, newer: PipelineDefinition) -> None:
        """Take over what the same document says now. Its nodes have the same names."""
        self.stages.update(newer.stages)
        self.signatures.update(newer.signatures)
        self.triggers.update(newer.triggers)
        self.connections = newer.connections
        self.state_types = newer.state_types
        self.unknown_reads = newer.unknown_reads

    def watched(self, state: str) -> Watched:
        """The states that a trigger for this type or pattern waits for."""
        from .trigger import watched

        if state not in self._watched:
            self._watched[state] = watched(state, self.own_types(), self.other_types.values())
        return self._watched[state]

    def _wanted_states(self) -> dict[str, str]:
        """The type or pattern of states that each trigger waits for."""
        forms = {name: own.trigger.form.awaited for name, own in self.triggers.items()}
        return {name: form.wanted for name, form in forms.items() if form is not None}

    def unknown_states(self) -> dict[str, str]:
        """Triggers, and nodes of a document, that wait for states of a type that no pipeline of the root is known to make, and
        that type.
        """
        awaited = {name: state for name, state in self._wanted_states().items() if not self.watched(state).is_known}
        return {**awaited, **self.unknown_reads}

    def own_types(self) -> dict[str, str]:
        """The patterns of the states it makes, by their type: the stage, or what a document calls them."""
        stages = {name: next(iter(stage.outputs.values())).pattern.text for name, stage in self.stages.items()}
        return {**self.state_types, **stages}

    def awaited(self) -> dict[str, tuple[Pattern, ...]]:
        """The patterns of the states that each trigger waits for."""
        return {name: self.watched(state).patterns for name, state in self._wanted_states().items()}

    def _trigger_patterns(self) -> list[Pattern]:
        return [pattern for patterns in self.awaited().values() for pattern in patterns]

    def wanted(self, components: Sequence[str]) -> bool:
        """Whether something of this pipeline, or that its triggers wait for, can be in or below this directory."""
        names = list(components)
        return self.connections.wanted(names) or any(each.leads_to(names) for each in self._trigger_patterns())

    def concerns(self, path: str) -> bool:
        """Whether a file is, or is part of, an input or output of a stage, or of a state that a trigger waits for."""
        return self.connections.concerns(path) or self.triggered_by(path)

    def triggered_by(self, path: str) -> bool:
        return any(pattern.covers(path) for pattern in self._trigger_patterns())


def checked_root(root: str) -> str:
    if "://" in root and not root.startswith(DATABASES):
        raise DefinitionError(
            f"root={root.partition('://')[0]}://...: expected a directory, sqlite:///states.db or postgresql://..."
        )
    if root.startswith(DATABASES[0]):  # relative to the present directory, not to that of its first use
        return DATABASES[0] + os.path.abspath(root.removeprefix(DATABASES[0]))
    return root if "://" in root else os.path.abspath(root)


def open_states(root: str, pipeline: str) -> StateStore:
    """Open the store of states in a directory or at a URL."""
    if root.startswith(DATABASES):
        from .states.database import open_database_states

        return open_database_states(root, pipeline)
    return FileStates(root, pipeline)


def has_states(root: str) -> bool:
    """Whether there may be states: a database that was never used is not made by looking for some."""
    if not root.startswith(DATABASES):
        return True
    from .states.database import is_created

    return is_created(root)


def _calling_module() -> str:
    """Return the module of the first frame outside this package, under a name that another process can import."""
    frame = sys._getframe(1)
    own = __name__.rpartition(".")[0]
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).startswith(own):
        frame = frame.f_back
    name = str(frame.f_globals.get("__name__", "__main__"))
    return importable_name(sys.modules["__main__"]) if name == "__main__" else name
