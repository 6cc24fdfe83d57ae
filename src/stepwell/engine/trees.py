"""Whether a list of runs has child runs."""

from __future__ import annotations

from ..base.ids import RunId
from ..base.words import shown
from ..core.model import ListRuns
from ..errors import InputError


def with_children(query: ListRuns, parent: str | None, *, children: bool) -> ListRuns:
    """The query about roots only; with `parent` about the child runs of this run; with `children` about both."""
    if parent is not None:
        if not parent.isprintable():  # some stores cannot be asked for it
            raise InputError(f"parent={shown(parent)}: expected the id of a run")
        return query._replace(parent=RunId(parent))
    return query._replace(roots=not children)
