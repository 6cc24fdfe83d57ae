"""When a serving engine stores the triggers of its classes, and looks which triggers are due."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from ..core.model import ListRecords
from ..core.store import Store
from ..errors import StepwellError, StoreError
from .code.code import Code

log = logging.getLogger("stepwell")

LOOK_AGAIN_SECONDS = 5.0
"""How often to look for changed triggers, while there are some."""
NONE_SECONDS = 15.0
"""How often to look whether there are any."""


class TriggerPort(Protocol):
    """The triggers of an engine. They are loaded when there are some."""

    def declare(self, source: str, triggers: Iterable[Any]) -> object: ...

    def fire_due(self) -> float: ...


class TriggerRounds:
    def __init__(self, store: Store, code: Code, triggers: Callable[[], TriggerPort]) -> None:
        self._store, self._code, self._triggers = store, code, triggers
        self._declared: frozenset[str] = frozenset()
        """Targets of classes whose triggers are stored."""
        self._fire_at = 0.0
        self._look_at = 0.0

    def look_now(self) -> None:
        self._fire_at = 0.0

    def fire(self, again: float | None) -> float:
        """Fire what is due; the seconds until the next look, at most `again`."""
        now = time.monotonic()
        self._declare()
        if now >= self._fire_at:
            if self._are_some():
                seconds = self._triggers().fire_due()
                # This is called after every commit, but reads at most once a second what others added.
                self._fire_at, self._look_at = now + min(seconds, LOOK_AGAIN_SECONDS / 5), now + seconds
            else:
                self._fire_at = self._look_at = now + NONE_SECONDS
        soonest = max(0.0, self._look_at - now)
        return soonest if again is None else min(again, soonest)

    def _declare(self) -> None:
        """Store the triggers of the classes that are served here, once for each class; the last process to do so wins."""
        for workflow in self._code.classes():
            if workflow.workflow_target in self._declared:
                continue
            self._declared |= {workflow.workflow_target}
            if not (workflow._triggers or self._are_some()):
                continue
            try:
                self._triggers().declare(f"class {workflow.workflow_name}", workflow._triggers)
            except StoreError:
                self._declared -= {workflow.workflow_target}
                raise
            except StepwellError as error:
                log.warning("%s", error)

    def _are_some(self) -> bool:
        (records,) = self._store.read([ListRecords("trigger", limit=1)])
        return bool(records)
