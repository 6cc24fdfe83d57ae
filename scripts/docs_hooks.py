"""Hooks of `make docs`."""

from __future__ import annotations

import json
import re
from enum import Enum
from typing import Any

import stepwell
from stepwell import errors

_OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./([^)]+)\)")
_NAMED = re.compile(r"^::: stepwell\.(\w+)$", re.MULTILINE)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """A link to a file of the project that is no page: the site does not have it, so its path is shown."""
    if page.file.src_uri == "reference.md":
        markdown = _NAMED.sub(_with_members, markdown + _rest(markdown))
    return _OUTSIDE.sub(r"\1 (`\2`)", markdown)


def _with_members(named: re.Match[str]) -> str:
    """What autocomplete offers of a class. What is made of the methods of another is looked at as it is."""
    found = getattr(stepwell, named[1])
    if not isinstance(found, type) or issubclass(found, Enum | tuple | BaseException):
        return named[0]
    declared = {name for kind in found.__mro__ for name in vars(kind).get("__annotations__", ())}
    offered = sorted(name for name in {*dir(found), *declared} if not name.startswith("_"))
    made = "\n      force_inspection: true" if named[1].startswith("Async") else ""
    return f"{named[0]}\n    options:\n      members: {json.dumps(offered)}{made}\n"


def _rest(reference: str) -> str:
    """The public names that the page does not mention; all errors are in it."""
    known = {*_NAMED.findall(reference), *vars(errors), "__version__"}
    rest = [name for name in stepwell.__all__ if name not in known]
    return "\n## More\n\n" + "\n".join(f"::: stepwell.{name}" for name in rest) + "\n" if rest else ""
