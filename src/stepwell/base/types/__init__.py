"""Types that are kept as JSON: what annotations ask for, and values brought into that form and back.

What is stored is plain JSON without tags; who receives it gets the type that its own annotation asks for. A type that
Stepwell does not know is taught once, where it is defined:

    stepwell.types.register(Money, lambda money: str(money), Money.parse)
"""

from __future__ import annotations

from .foreign import register

__all__ = ["register"]
