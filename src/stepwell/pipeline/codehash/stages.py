"""The hashes of the code of stages, computed once and again after a module was reloaded."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from types import FunctionType
from typing import TYPE_CHECKING, Any

from ...base.codec import encode_checked
from ...base.version import __version__
from ...errors import DefinitionError
from ..stage import Stage
from ..staleness.judge import Current
from ..states.notes import keep_code, known_code
from ..states.port import StateStore
from ..states.single import is_recent, stamp_of
from .code import HashedCode, config_hash
from .loaded import is_project_file, loaded

if TYPE_CHECKING:
    from ..trigger import OwnTrigger


class StageCodes:
    """The code of each stage of one pipeline."""

    def __init__(
        self,
        name: str,
        stages: Mapping[str, Stage],
        triggers: Mapping[str, OwnTrigger],
        store: Callable[[], StateStore],
        skipped: tuple[type, ...],
    ) -> None:
        self._pipeline = name
        self._stages = stages
        self._triggers = triggers
        self._store = store
        self._skipped = skipped
        self._code: dict[str, HashedCode] = {}
        self._current: dict[str, Current] = {}
        loaded.look()

    def of(self, stage: str) -> HashedCode:
        """The code of a stage: its function, and everything of the project that it uses."""
        found = self._code.get(stage)
        if found is None:
            found = self._find(self._stages[stage])
            loaded.look()
            if changed := loaded.changed(found.files):
                raise DefinitionError(
                    f"pipeline {self._pipeline!r}: {changed[0]} was changed after this process had imported it, so stage "
                    f"{stage!r} does not run what is written there; restart the process, or reload the module"
                )
            self._code[stage] = found
        return found

    def check(self, stage: Stage) -> None:
        """DefinitionError if the code of a stage cannot be found. That of a `def` in the project can."""
        function = stage.function
        is_def = isinstance(function, FunctionType) and is_project_file(function.__code__.co_filename)
        if stage.handler is None and not is_def:
            self._find(stage)

    def _find(self, stage: Stage) -> HashedCode:
        from .follow import code_of

        # The body of a stage in a document says what its code is.
        function, version = getattr(stage.function, "code", (stage.function, None))
        home = "" if stage.place is None else stage.place.file
        try:
            return code_of(
                function, version=stage.version or version, uses=stage.uses, skipped=self._skipped, home=home
            )
        except DefinitionError as error:
            raise DefinitionError(f"stage {stage.name!r}: {error}", where=stage.place) from None

    def current(self, stage: str) -> Current:
        """The hashes and checks with which states of a stage must agree to be fresh."""
        found = self._current.get(stage)
        if found is None:
            given = self._stages[stage]
            code_hash = self._known_hash(given) or self.of(stage).hash
            checked = ""
            if given.validate is not None:
                from .follow import code_of

                checked = code_of(given.validate, skipped=self._skipped).hash
            found = Current(code_hash, config_hash(given.config, given.handler), checked, given.min_size)
            self._current[stage] = found
        return found

    def fingerprint(self) -> str:
        """A hash of everything that standings depend on, except the content of the store."""
        told = [
            [stage.name, [(name, p.text) for name, p in stage.inputs.items()],
             [(name, o.pattern.text) for name, o in stage.outputs.items()], stage.collect, stage.quiet, dict(stage.filters),
             list(self.current(stage.name)), stage.entities is not None, sorted(stage.gates)]
            for stage in self._stages.values()
        ]  # fmt: skip
        return sha256(
            encode_checked([told, [each.identity for each in self._triggers.values()], __version__])
        ).hexdigest()

    def keep(self, stage: str) -> None:
        """Store the hashes of the parts of a stage, for `why` to compare with later."""
        notes = self._store().notes
        if known_code(notes, self.current(stage).code_hash) is None:
            code = self.of(stage)
            keep_code(notes, code.hash, {name: part[0] for name, part in code.parts.items()})

    def stamps(self) -> dict[str, Any]:
        """The hash of each stage, with the stamps of its files: while these are the same, so is the hash."""
        stamps = {}
        for name, stage in self._stages.items():
            code = self._code.get(name)
            if code is None:
                if self._known_hash(stage) is not None:
                    stamps[name] = self._cached(name)
            elif code.is_static and _function_name(stage):
                files = [[file, list(stamp or ())] for file, stamp in sorted(code.files.items())]
                stamps[name] = [_function_name(stage), code.hash, files]
        return stamps

    def _cached(self, stage: str) -> Any:
        return self._store().cache.read().verdict.get("code", {}).get(stage)

    def _known_hash(self, stage: Stage) -> str | None:
        """The cached hash of a stage, if none of its files has changed since."""
        if stage.name in self._code or not _function_name(stage):
            return None
        entry = self._cached(stage.name)
        if entry is None or entry[0] != _function_name(stage):
            return None
        now = time.time_ns()
        for file, stamp in entry[2]:
            seen = stamp_of(file)
            if seen is None or list(seen) != stamp or is_recent(seen, now):
                return None
        return str(entry[1])

    def refresh(self) -> None:
        """Forget the code of stages whose modules were reloaded. A change in a file alone does not run in this process."""
        loaded.look()
        for name, stage in self._stages.items():
            known = self._code.get(name)
            if known is not None:
                same = known.is_current
            else:
                same = name not in self._current or self._known_hash(stage) is not None or self._is_outdated(stage)
            if not same:
                self._code.pop(name, None)
                self._current.pop(name, None)

    def _is_outdated(self, stage: Stage) -> bool:
        """Whether a file behind the cached hash of a stage changed after this process had imported it."""
        entry = self._cached(stage.name)
        return entry is not None and bool(loaded.changed([file for file, _ in entry[2]]))


def _function_name(stage: Stage) -> str:
    """The function of a stage and those that its decorators wrapped; empty if its hash does not follow from their files."""
    if stage.version is not None or stage.uses:
        return ""
    names = []
    function = stage.function
    while isinstance(function, FunctionType):
        code = function.__code__
        names.append(f"{code.co_filename}:{code.co_firstlineno}:{code.co_qualname}")
        function = function.__dict__.get("__wrapped__")
    return " ".join(names) if function is None else ""
