"""What makes a run repeatable: recorded effects, and a guard against what is not recorded.

`stepwell.history.httpx` has a transport for httpx that records; it is loaded only when it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .effects.decorator import effect
from .effects.exceptions import EffectError
from .effects.record import Effect

if TYPE_CHECKING:
    from .guarding.guard import guard

__all__ = ["Effect", "EffectError", "effect", "guard"]


def __getattr__(name: str) -> Any:
    if name != "guard":
        raise AttributeError(f"module 'stepwell.history' has no attribute {name!r}")
    from .guarding.guard import guard  # it looks at sockets and subprocesses, which few programs load

    globals()["guard"] = guard
    return guard
