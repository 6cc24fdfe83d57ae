"""Whether code is inside an effect: a context variable, like that of the body it belongs to (`current.py`)."""

from __future__ import annotations

from contextvars import ContextVar

inside: ContextVar[bool] = ContextVar("stepwell_inside_effect", default=False)
"""True in the function of an effect: what it does is recorded as its response, not once more by itself."""
