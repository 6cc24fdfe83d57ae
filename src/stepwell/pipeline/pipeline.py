"""`Pipeline`: stages that make states from states, and keep them up to date."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from ..clock import POSITIVE_SECONDS_NEEDED, Duration, in_seconds, is_seconds
from ..codec import encode_checked
from ..errors import DefinitionError
from ..importable import importable_name
from ..place import caller
from ..version import __version__
from ..words import shown
from . import registry
from .patterns.paths import name_problem
from .patterns.pattern import Pattern
from .stage import BACK_OFF, Stage, make_stage
from .staleness.connections import Connections, connect
from .staleness.judge import Current
from .states.files import FileStates
from .states.listing import is_recent, stamp_of

if TYPE_CHECKING:
    from ..define.options import JobOptions
    from ..runner import Engine
    from .building.arguments import Signature
    from .building.build import BuildReport
    from .building.triggers import Trigger
    from .codehash.code import Code
    from .looking import Explanation, PipelineStatus, Plan, View
    from .states.port import StateStore

Function = TypeVar("Function", bound=Callable[..., Any])


class Pipeline:
    """Stages that make states from states. What is missing or stale is produced, what is fresh is left alone.

        blog = Pipeline("auto-blog", root="output")

        @blog.stage(input="daily/{date}/*.txt", output="daily/{date}/summary.txt", min_size=500)
        def summary(entity, files: list[str]) -> str: ...

        @blog.stage(input="daily/{date}/summary.txt", output="final/{date}-digest.md")
        def digest(entity, summary: str) -> str: ...

        blog.build()

    `root` is where states are: a directory, or `sqlite:///states.db`. Paths and patterns are relative to it.
    """

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
    ) -> None:
        self.place = caller()
        if not isinstance(name, str) or name_problem(name) or "#" in name:
            problem = name_problem(name) if isinstance(name, str) else "some text is needed"
            raise DefinitionError(
                f"{shown(name)} cannot be the name of a pipeline: {problem or 'no # is allowed'}", where=str(self.place)
            )
        interval = in_seconds(scan_interval)
        if not is_seconds(interval, positive=True):
            raise DefinitionError(
                f"scan_interval={shown(scan_interval)}: {POSITIVE_SECONDS_NEEDED} is needed", where=str(self.place)
            )
        self.name = name
        self.home = home or _calling_module()
        """The module that another process imports to have this pipeline, or the file of its document."""
        self.scan_interval = float(interval)
        self.back_off = tuple(back_off)
        self.limit = limit
        self.clock = clock
        self.stages: dict[str, Stage] = {}
        self.triggers: dict[str, Trigger] = {}
        self.store: StateStore = open_states(os.fspath(root), name)
        self.made_at_ns = time.time_ns()
        self._connections: Connections | None = None
        self._excluded: dict[tuple[str, str], tuple[Pattern, ...]] = {}
        self._signatures: dict[str, Signature] = {}
        self._code: dict[str, Code] = {}
        self._current: dict[str, Current] = {}
        registry.enter(self)

    def __repr__(self) -> str:
        return f"<Pipeline {self.name} at {self.store.url}>"

    # Writing

    def stage(
        self,
        name: str | None = None,
        *,
        input: str | Mapping[str, str] | None = None,
        output: str | Mapping[str, str],
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
        """Make a function a stage. It is returned as it is, and can be called and tested as any other."""
        place = caller()

        def add(function: Function) -> Function:
            self.add(
                make_stage(
                    name or function.__name__, input=input, output=output, collect=collect, function=function, config=config,
                    entities=entities, filter=filter, min_size=min_size, validate=validate, quiet=quiet, priority=priority,
                    limit=limit, back_off=self.back_off if back_off is None else back_off, version=version, uses=uses,
                    options=options, place=place,
                )
            )  # fmt: skip
            return function

        return add

    def add(self, stage: Stage, signature: Signature | None = None) -> None:
        """Add a stage that was made otherwise: from a document."""
        from .building.arguments import signature_of

        if stage.name in self.stages:
            raise DefinitionError(
                f"pipeline {self.name!r} has a stage {stage.name!r} already; give this one another name: stage(name=...)",
                where=str(stage.place),
            )
        if stage.options:
            from ..define.options import checked_options

            checked_options(stage.place or self.place, stage.options)  # type: ignore[arg-type]
        self._signatures[stage.name] = signature or signature_of(stage)
        connect([*self.stages.values(), stage], self.name)
        self.stages[stage.name] = stage
        self._connections = None
        self._excluded.clear()

    def trigger(
        self,
        name: str,
        *,
        state: str,
        workflow: Any = None,
        filter: str | None = None,
        existing: bool = False,
    ) -> None:
        """Start a workflow once for each new state: `state` is a stage or a pattern, `workflow` the name of a saved document, a
        Document, or a function that makes a workflow of the event.

        `filter` is an expression over `codeHash`, `currentCodeHash`, `contentHash`, `entity`, `stateType` and `path`. States
        that are there when the trigger is first seen count only with `existing`.
        """
        from .building.triggers import make_trigger

        if name in self.triggers:
            raise DefinitionError(f"pipeline {self.name!r} has a trigger {name!r} already", where=str(caller()))
        self.triggers[name] = make_trigger(self, name, state, workflow, filter, existing)

    @property
    def connections(self) -> Connections:
        if self._connections is None:
            self._connections = connect(list(self.stages.values()), self.name)
        return self._connections

    def wanted(self, components: Sequence[str]) -> bool:
        """Whether something that a pattern matches can be in a directory or below it."""
        names = list(components)
        for stage in self.stages.values():
            for pattern in (*stage.inputs.values(), *(output.pattern for output in stage.outputs.values())):
                if pattern.is_directory:
                    if pattern.match_components(names[: pattern.depth]) is not None:
                        return True
                elif len(names) < pattern.depth and pattern.match_components(names) is not None:
                    return True
        return False

    def concerns(self, path: str) -> bool:
        """Whether a file is, or is part of, an input or output of a stage."""
        return any(
            pattern.covers(path)
            for stage in self.stages.values()
            for pattern in (*stage.inputs.values(), *(output.pattern for output in stage.outputs.values()))
        )

    # What stages are made of

    def signature(self, stage: str) -> Signature:
        return self._signatures[stage]

    def body(self, stage: str) -> Callable[..., Any]:
        function = self.stages[stage].function
        assert function is not None
        return function

    def excluded(self, stage: str, input: str) -> tuple[Pattern, ...]:
        found = self._excluded.get((stage, input))
        if found is None:
            found = next(each.excluded for each in self.connections.readings[stage] if each.name == input)
            self._excluded[stage, input] = found
        return found

    def code(self, stage: str) -> Code:
        """What a stage is made of: its function, and what that uses of the project."""
        found = self._code.get(stage)
        if found is None:
            from .codehash.code import code_of

            given = self.stages[stage]
            # The body of a document says what stands for its code.
            function, version = getattr(given.function, "code", (given.function, None))
            found = code_of(function, version=given.version or version, uses=given.uses, skipped=(Pipeline,))
            self._code[stage] = found
        return found

    def current(self, stage: str) -> Current:
        """What tells whether states of a stage are up to date with it."""
        found = self._current.get(stage)
        if found is None:
            from .codehash.code import code_of, config_hash

            given = self.stages[stage]
            known = self._known_hash(given)
            checked = "" if given.validate is None else code_of(given.validate, skipped=(Pipeline,)).hash
            found = Current(
                known or self.code(stage).hash, config_hash(given.config, given.handler), checked, given.min_size
            )
            self._current[stage] = found
        return found

    def fingerprint(self) -> str:
        """Changes with everything that standings follow from, besides what is in the store."""
        told = [
            [stage.name, [(name, p.text) for name, p in stage.inputs.items()],
             [(name, o.pattern.text) for name, o in stage.outputs.items()], stage.collect, stage.quiet, dict(stage.filters),
             list(self.current(stage.name)), stage.entities is not None, sorted(stage.gates)]
            for stage in self.stages.values()
        ]  # fmt: skip
        return sha256(encode_checked([told, sorted(self.triggers), __version__])).hexdigest()

    def keep_code(self, stage: str) -> None:
        """Write down what a stage is made of, for `why` to compare with later."""
        if self.store.known_code(self.current(stage).code_hash) is not None:
            return
        code = self.code(stage)
        self.store.keep_code(code.hash, {name: part[0] for name, part in code.parts.items()})

    def code_stamps(self) -> dict[str, Any]:
        """The hash of each stage, with the stamps of the files it was found in: while they are the same, it is."""
        stamps = {}
        known = self.store.cached().verdict.get("code", {})
        for name, stage in self.stages.items():
            if name not in self._code and self._known_hash(stage) is not None:
                stamps[name] = known[name]
                continue
            code = self.code(name)
            if code.is_static and stage.function is not None and not stage.uses:
                files = [[file, list(stamp or ())] for file, stamp in sorted(code.files.items())]
                stamps[name] = [_function_name(stage.function), code.hash, files]
        return stamps

    def _known_hash(self, stage: Stage) -> str | None:
        """The hash of a stage that the cache knows, if none of its files has changed since."""
        if stage.name in self._code or stage.function is None:
            return None
        found = self.store.cached().verdict.get("code", {}).get(stage.name)
        if found is None or found[0] != _function_name(stage.function):
            return None
        now = time.time_ns()
        for file, stamp in found[2]:
            seen = stamp_of(file)
            if seen is None or list(seen) != stamp or is_recent(seen, now):
                return None
        return str(found[1])

    def refresh_code(self) -> None:
        """Look again at the code of stages whose modules were reloaded."""
        for name, stage in self.stages.items():
            known = self._code.get(name)
            if known.is_current if known is not None else (name not in self._current or self._known_hash(stage)):
                continue
            self._code.pop(name, None)
            self._current.pop(name, None)

    def forget_code(self) -> None:
        """Look at the code again: a module was reloaded."""
        self._code.clear()
        self._current.clear()

    # Looking and working

    def view(self) -> View:
        """How everything stands now."""
        from .looking import View

        return View(self)

    def status(self) -> PipelineStatus:
        return self.view().status()

    def why(self, state: str) -> Explanation:
        """Why a state, named by its path, stands as it does."""
        return self.view().why(state)

    def plan(self, targets: Iterable[str] = (), *, force: bool = False) -> Plan:
        """What `build` will run, and what it may run because it is below."""
        return self.view().plan(targets, force=force)

    def build(
        self,
        targets: Iterable[str] = (),
        *,
        engine: Engine | str | None = None,
        force: bool = False,
        patience: float = 3_600.0,
    ) -> BuildReport:
        """Produce what is missing or stale: all of it, or what `targets` (states, entities, stages) need."""
        from .building.verdict import list_everything, nothing_to_do

        given, began = tuple(targets), time.monotonic()
        listed = list_everything(self)
        if not given and not force and (done := nothing_to_do(self, listed)) is not None:
            return done._replace(seconds=time.monotonic() - began)
        from .building.build import build

        return build(self, given, engine=engine, force=force, patience=patience, listed=listed)

    def accept(self, *targets: str) -> list[str]:
        """Take states as they are, also those that nobody recorded; their addresses are returned."""
        from . import steering

        return steering.accept(self, targets)

    def invalidate(self, *targets: str, stage: str | None = None) -> list[str]:
        """Have states made again."""
        from . import steering

        return steering.invalidate(self, targets, stage=stage)

    def retry(self, *targets: str) -> list[str]:
        """Have what failed tried again by the next scan: all of it, or what is named."""
        from . import steering

        return steering.retry(self, targets)

    def clean(self, *, dry_run: bool = False) -> list[str]:
        """Remove states whose source is gone."""
        from . import steering

        return steering.clean(self, dry_run=dry_run)

    def put(self, path: str, content: bytes) -> None:
        """Write a source into the store of states."""
        from . import steering

        steering.put(self, path, content)


def open_states(root: str, pipeline: str) -> StateStore:
    """The store of states at a directory or a URL."""
    if root.startswith("sqlite:///"):
        from .states.database import DatabaseStates

        return DatabaseStates(root, pipeline)
    if "://" in root:
        raise DefinitionError(f"root={root!r}: a directory is needed, or sqlite:///states.db")
    return FileStates(root, pipeline)


def _function_name(function: Callable[..., Any]) -> str:
    code = getattr(function, "__code__", None)
    return "" if code is None else f"{code.co_filename}:{code.co_firstlineno}:{code.co_qualname}"


def _calling_module() -> str:
    """The module of the first frame outside this package, under the name that another process can import."""
    frame = sys._getframe(1)
    own = __name__.rpartition(".")[0]
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).startswith(own):
        frame = frame.f_back
    name = str(frame.f_globals.get("__name__", "__main__"))
    return importable_name(sys.modules["__main__"]) if name == "__main__" else name
