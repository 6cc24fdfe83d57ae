"""For tests of workflows: `speedrun`, and a pytest plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .virtual.run import speedrun

__all__ = ["speedrun"]


def __getattr__(name: str) -> Any:
    if name == "speedrun":
        from .virtual.run import speedrun

        return speedrun
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
