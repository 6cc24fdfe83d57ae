"""What makes a run repeatable: recorded effects, and a guard against what is not recorded.

`stepwell.history.httpx` has a transport for httpx that records; it is loaded only when it is used.
So is the rest: `stepwell ls` compares and measures without loading what records.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .effects.decorator import effect
    from .effects.exceptions import EffectError
    from .effects.record import Effect
    from .guarding.guard import guard

__all__ = ["Effect", "EffectError", "effect", "guard"]

_HOMES = {
    "Effect": ".effects.record",
    "EffectError": ".effects.exceptions",
    "effect": ".effects.decorator",
    "guard": ".guarding.guard",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'stepwell.history' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name], __name__), name)
    return value
