"""What inputs are drawn from."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

LONG = "a" * 10_000


def repeated(*pieces: str, most: int = 20_000) -> st.SearchStrategy[str]:
    """Texts of a few pieces, some of them very often: what quadratic code is slow with."""
    part = st.builds(lambda piece, times: piece * times, st.sampled_from(pieces), st.sampled_from([1, 1, 2, 50, most]))
    return st.lists(part, max_size=6).map("".join)


def node(number: int, **more: Any) -> dict[str, Any]:
    return {"id": f"n{number}", "handler": "compute", "config": {"expression": "1"}, **more}


def document(*nodes: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "x", "nodes": list(nodes), **more}


READ = [
    "{",
    "}",
    "[",
    "]",
    "[],",
    '{"a":1},',
    '"',
    "\\",
    '\\"',
    "/*",
    "*/",
    "//",
    "\n",
    ",",
    "1",
    "a",
    ": ",
    "- ",
    "? ",
    "&a ",
    "\t",
    "\r",
]
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
