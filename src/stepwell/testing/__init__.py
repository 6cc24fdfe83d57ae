"""For tests of workflows: `speedrun`. For authors of stores: ops in few words (`ops`), an auditor of what a store holds
(`audit`), the suite every store passes (`conformance`)."""

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
