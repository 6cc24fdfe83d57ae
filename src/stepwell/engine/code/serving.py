"""Which runs of others an engine works on: those whose code it has, in the version they follow or after a heal."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from ...base.ids import RunId
from ...core.graph import Graph
from ...core.model import INTERNAL_WORKFLOW, Lane, RunRow, Unfinished
from ...core.store import Store, reader
from ...errors import DefinitionError, RunConflict, RunError, RunNotFound, StepwellError, StoreError
from ..bodies.held import RunFacts
from .code import Code, Outdated
from .versions import Versions

log = logging.getLogger("stepwell")

HEALING_SECONDS = 0.2
"""How long runs are healed before other work gets a turn."""
LACKS = 20
"""How many graphs to announce that cannot run here."""
LACKING_SECONDS = 5.0
"""How often to look whether a missing secret or service is here now."""
LOOK_AGAIN_SECONDS = 1.0
"""How often to look whether the worker with newer code is still alive."""

Pairs = dict[tuple[str, str], frozenset[Lane]]


class ServedVersions:
    def __init__(
        self,
        store: Store,
        code: Code,
        versions: Versions,
        *,
        work_on: Callable[[RunRow, RunFacts], None],
        announce: Callable[[], None],
    ) -> None:
        self._store = store
        self._code = code
        self._versions = versions
        self._work_on = work_on
        self._announce = announce
        self._lock = threading.Lock()
        self.everything = False
        self._known: dict[Unfinished, frozenset[Lane] | None] = {}
        self._look_again: dict[Unfinished, float] = {}
        self._lacks: dict[Unfinished, str] = {}
        """What is missing here to work on such runs."""
        self._left: dict[RunId, float] = {}
        """Runs that this engine left to newer code, and when to look at them again."""

    @property
    def wanted(self) -> bool:
        return bool(self.everything or self._code.given)

    @property
    def needed(self) -> bool:
        """Whether there may be something to discover."""
        return bool(self.wanted or self._left)

    def can_serve(self, needed: Unfinished) -> bool | None:
        """Whether the code of such runs is here; None while nobody has looked."""
        return None if needed not in self._known else self._known[needed] is not None

    def why_not(self, needed: Unfinished) -> str | None:
        """What is missing here to work on such runs; None if nothing is."""
        return self._code.absent(needed.workflow, needed.target, self._code.graphs.get(needed.digest))

    def lacks(self) -> list[tuple[str, str, str]]:
        """What is missing here, to announce: workflow, digest, reason."""
        found = list(self._lacks.items())[:LACKS]
        return [(item.workflow, item.digest, reason[:500]) for item, reason in found]

    def leave(self, run_id: RunId) -> None:
        """Stop working on a run that follows another version now."""
        self._left[run_id] = time.monotonic()

    def wait(self) -> float | None:
        """Seconds until the next discovery even if nothing changes; None if it is not necessary."""
        soonest = min((*self._look_again.values(), *self._left.values()), default=None)
        return None if soonest is None else max(0.0, soonest - time.monotonic())

    def discover(self) -> Pairs | None:
        """What to serve now; None if this engine works only on what it started or adopted."""
        with self._lock:  # the housekeeper discovers too
            return self._discover()

    def _discover(self) -> Pairs | None:
        self._return_to_left()
        if not self.wanted:
            return None
        unfinished = reader.list_unfinished(self._store)
        # Forget what has ended, or every graph that was built at run time would stay for ever.
        self._look_again = {item: self._look_again[item] for item in unfinished if item in self._look_again}
        self._known = {item: self._known[item] for item in unfinished if item in self._known}
        before = self.lacks()
        self._lacks = {item: self._lacks[item] for item in unfinished if item in self._lacks}
        for item in unfinished:
            unknown = item not in self._known or item in self._look_again
            if unknown and self._look_again.get(item, 0) <= time.monotonic():
                self._judge(item)
        if self.lacks() != before:
            self._announce()
        return {(item.workflow, item.digest): lanes for item, lanes in self._known.items() if lanes}

    def _judge(self, item: Unfinished) -> None:
        may_serve = self.everything or item.workflow in self._code.given or item.workflow == INTERNAL_WORKFLOW
        if not may_serve:
            self._known[item] = None
            return
        now = time.monotonic()
        self._look_again[item] = now + LOOK_AGAIN_SECONDS
        try:
            # Announced before a run is healed to it: a worker with older code would heal it back.
            if self._code.has_version_of(item.workflow, item.target):
                self._announce()
            graph = self._code.graphs.get(item.digest)
            verdict = self._versions.judge(item.workflow, item.target, graph)
            if verdict == "serve":
                self._known[item] = self._code.lanes_if_complete(item.workflow, item.target, graph)
                if not self._is_lacking(item, graph):
                    del self._look_again[item]
            elif verdict != "yield" and self._versions.heal_all(item, verdict, now + HEALING_SECONDS):
                self._look_again[item] = now
        except (StoreError, RunError):  # they say nothing about the code
            raise
        except StepwellError:
            self._known[item] = None  # its code is not here
            del self._look_again[item]

    def _is_lacking(self, item: Unfinished, graph: Graph) -> bool:
        """Whether something is missing that may come: what handlers need is looked up again each time."""
        self._lacks.pop(item, None)
        if self._known[item] is not None:
            return False
        reason = self.why_not(item)
        if reason is not None:
            self._lacks[item] = reason
        self._look_again[item] = time.monotonic() + LACKING_SECONDS
        return any(spec.templated for spec in graph)

    def _return_to_left(self) -> None:
        now = time.monotonic()
        for run_id in [run_id for run_id, at in self._left.items() if at <= now]:
            row = reader.get_run(self._store, run_id)
            if row is None or row.status.terminal:
                del self._left[run_id]
                continue
            try:
                row = self._versions.up_to_date(row)
                self._work_on(row, self._code.facts(row))
                del self._left[run_id]
            except RunNotFound:
                del self._left[run_id]
            except (RunConflict, Outdated):
                self._left[run_id] = now + LOOK_AGAIN_SECONDS
            except DefinitionError as error:
                log.warning("run %s is left to others: %s", run_id, error)
                del self._left[run_id]
