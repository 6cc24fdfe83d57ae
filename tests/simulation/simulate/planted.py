"""Where planted bugs are listed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

Mutant = Callable[[], "contextlib.AbstractContextManager[Any]"]

MUTANTS: dict[str, Mutant] = {}


def planted(name: str) -> Callable[[Mutant], Mutant]:
    def register(make: Mutant) -> Mutant:
        MUTANTS[name] = make
        return make

    return register
