"""Whether the running code is inside an effect."""

from __future__ import annotations

from contextvars import ContextVar

inside: ContextVar[bool] = ContextVar("stepwell_inside_effect", default=False)
"""True in the function of an effect: what it asks is part of its response and not recorded again."""
