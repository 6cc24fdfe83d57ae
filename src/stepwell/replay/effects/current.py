"""Which body the running code belongs to.

A context variable tells bodies on one loop apart; tasks and `asyncio.to_thread` belong to the body that made them. A thread
that a body starts does not, unless it is given the body's context.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING

from .recorder import inside

if TYPE_CHECKING:
    from .repeatable import Repeatable

_body: ContextVar[Repeatable | None] = ContextVar("stepwell_body", default=None)
# A forked child has none of our threads: what it does is not recorded.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _body.set(None))

enter: Callable[[Repeatable | None], object] = _body.set
"""From now on this context belongs to this body, or to none. Not a Python function, because it is called for every body."""


def current() -> Repeatable | None:
    """The body whose effects are to be recorded; None outside of bodies, and inside an effect."""
    return None if inside.get() else _body.get()
