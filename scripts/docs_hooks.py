"""Hooks of `make docs`."""

from __future__ import annotations

import re
from typing import Any

import stepwell
from stepwell import errors

_OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./([^)]+)\)")
_NAMED = re.compile(r"^::: stepwell\.(\w+)$", re.MULTILINE)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """A link to a file of the project that is no page: the site does not have it, so its path is shown."""
    if page.file.src_uri == "reference.md":
        markdown += _rest(markdown)
    return _OUTSIDE.sub(r"\1 (`\2`)", markdown)


def _rest(reference: str) -> str:
    """The public names that the page does not mention; all errors are in it."""
    known = {*_NAMED.findall(reference), *vars(errors), "__version__"}
    rest = [name for name in stepwell.__all__ if name not in known]
    return "\n## More\n\n" + "\n".join(f"::: stepwell.{name}" for name in rest) + "\n" if rest else ""
