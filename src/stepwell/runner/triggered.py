"""The part of an engine that fires triggers. What they need is loaded when there are some."""

from __future__ import annotations

import logging
import time
from functools import cached_property
from typing import TYPE_CHECKING, cast

from ..errors import StepwellError, StoreError
from ..model import ListRecords
from ..store import Store

if TYPE_CHECKING:
    from .code.code import Code
    from .code.serving import Serving
    from .triggers import EngineTriggers, TriggeredEngine
    from .worker.follower import Follower

log = logging.getLogger("stepwell")

LOOK_AGAIN_SECONDS = 5.0
"""How often to look for changed triggers, while there are some."""
NONE_SECONDS = 15.0
"""How often to look whether there are any."""


class Triggered:
    store: Store
    serving: Serving
    code: Code
    _declared: frozenset[str] = frozenset()
    """Targets of classes whose triggers are stored."""
    _fire_at = 0.0
    _look_at = 0.0

    @property
    def works(self) -> bool:
        """Whether it runs bodies."""
        return getattr(self, "_runner", None) is not None

    @cached_property
    def triggers(self) -> EngineTriggers:
        """What starts runs by itself: schedules, webhooks, the end of other runs. An engine that serves fires them."""
        from .triggers import EngineTriggers

        return EngineTriggers(cast("TriggeredEngine", self))

    def look_at_triggers(self) -> None:
        """A trigger was added or changed here: look at once what is due."""
        self._fire_at = 0.0
        follower: Follower | None = getattr(self, "_follower", None)
        if follower is not None and self.serving.wanted:
            follower.serve_again(0)

    def _declare(self) -> None:
        """Store the triggers of the classes that are served here, once for each class; the last process to do so wins."""
        for workflow in self.code.classes():
            if workflow.target in self._declared:
                continue
            self._declared |= {workflow.target}
            (found,) = self.store.read([ListRecords("trigger", limit=1)])
            if not (workflow._triggers or found):
                continue
            try:
                self.triggers.declare(f"class {workflow.workflow_name}", workflow._triggers)
            except StoreError:
                self._declared -= {workflow.target}
                raise
            except StepwellError as error:
                log.warning("%s", error)

    def _fire_triggers(self, again: float | None) -> float | None:
        """Fire what is due, if this engine serves; the seconds until the next look, at most `again`."""
        if not self.serving.wanted:
            return again
        now = time.monotonic()
        self._declare()
        if now >= self._fire_at:
            (found,) = self.store.read([ListRecords("trigger", limit=1)])
            if found:
                seconds = self.triggers.fire_due()
                # This is called after every commit, but reads at most once a second what others added.
                self._fire_at, self._look_at = now + min(seconds, LOOK_AGAIN_SECONDS / 5), now + seconds
            else:
                self._fire_at = self._look_at = now + NONE_SECONDS
        soonest = max(0.0, self._look_at - now)
        return soonest if again is None else min(again, soonest)
