"""Values that people give: each is what is allowed, or an InputError that says what that is."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from ..base.clock import POSITIVE_SECONDS_NEEDED, SECOND, SECONDS_NEEDED, in_seconds, is_seconds
from ..base.words import shown
from ..core.model import RunStatus
from ..define import Workflow
from ..errors import DefinitionError, InputError

MAX_KEY = 500
"""Bytes of a text that a store finds rows by."""
MAX_TAGS = 32
MAX_LIMIT = 1_000_000
LEAST_LEASE = 0.1
"""Seconds."""
_LARGEST = 2**63 - 1
Choice = TypeVar("Choice")


def checked_seconds(name: str, value: Any, *, positive: bool = False) -> float:
    """A duration that somebody gave, in seconds."""
    seconds: float = in_seconds(value)
    if not is_seconds(seconds, positive=positive):
        raise _wrong(name, value, POSITIVE_SECONDS_NEEDED if positive else SECONDS_NEEDED)
    return seconds


def checked_limit(name: str, value: Any, *, positive: bool = False) -> float | None:
    """The same where None means that there is no limit."""
    return None if value is None else checked_seconds(name, value, positive=positive)


def check_whole(name: str, value: Any, low: int, high: int, expected: str) -> None:
    """`low` and `high` are allowed."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise _wrong(name, value, expected)


def check_text(name: str, value: Any) -> None:
    if not _is_key(value):
        raise _wrong(name, value, f"a text of 1 to {MAX_KEY} bytes")


def _is_key(value: Any) -> bool:
    try:
        return isinstance(value, str) and 0 < len(value.encode()) <= MAX_KEY and "\x00" not in value
    except UnicodeEncodeError:
        return False


def checked_tags(value: Any) -> tuple[tuple[str, str], ...]:
    """What people find a run by, in order of the names."""
    if value is None:
        return ()
    given = dict(value) if isinstance(value, Mapping) else None
    if given is None or len(given) > MAX_TAGS or not all(_is_key(text) for tag in given.items() for text in tag):
        expected = f"at most {MAX_TAGS} texts by name, each of 1 to {MAX_KEY} bytes"
        raise _wrong("tags", value, f'{expected}, as in {{"customer": "7"}}')
    return tuple(sorted(given.items()))


def check_attempt(value: Any) -> None:
    if value is not None:
        check_whole("attempt", value, 1, _LARGEST, "a whole number from 1")


def check_step(run_id: str, value: Any) -> None:
    """Where in a run: whether it has such an entry or label is for others to say."""
    is_whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST
    if not (value is None or isinstance(value, str) or is_whole):
        raise InputError(
            f"run {run_id} has no checkpoint {shown(value)}: expected a seq of its journal, which is a whole number, or a name"
        )


def check_node_name(value: Any) -> None:
    if not isinstance(value, str):
        raise InputError(f"expected the name or id of a node, got {shown(value)}")


def checked_changes(value: Any) -> dict[str, Any]:
    """What is to be changed in the input of a run."""
    if value is None:
        return {}
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return dict(value)
    raise _wrong("input", value, 'a dict of inputs by name, as in {"express": True}')


def check_page(limit: Any) -> None:
    check_whole("limit", limit, 1, _LARGEST, "a whole number from 1")


def check_name(name: str, value: Any, expected: str) -> None:
    if value is not None and not isinstance(value, str):
        raise _wrong(name, value, expected)


def checked_choice(name: str, value: Any, choices: Sequence[Choice]) -> Choice:
    if value not in choices:
        raise _wrong(name, value, f"one of {', '.join(map(str, choices))}")
    return choices[choices.index(value)]


def checked_time(name: str, value: Any) -> int | None:
    """A time as the store counts it: given as a datetime with a time zone, or as how long ago."""
    if value is None:
        return None
    if isinstance(value, timedelta):
        return int((datetime.now(UTC) - value).timestamp() * SECOND)
    if isinstance(value, datetime) and value.tzinfo is not None:
        return int(value.timestamp() * SECOND)
    raise _wrong(name, value, "a datetime with a time zone, or a timedelta, which counts back from now")


def checked_status(value: Any) -> RunStatus:
    if isinstance(value, str) and value.upper() in RunStatus.__members__:
        return RunStatus(value.upper())
    raise _wrong("status", value, f"one of {', '.join(RunStatus)}")


def checked_list(workflows: Any) -> Iterable[Any]:
    """Whether each of them can be run is seen when its turn comes."""
    if isinstance(workflows, Iterable) and not isinstance(workflows, str | bytes | Mapping):
        return workflows
    raise InputError(f"expected a list of what to run, as in [Order(id=1), Order(id=2)], got {shown(workflows)}")


def checked_workflows(workflows: Any) -> list[type[Workflow]]:
    if isinstance(workflows, Iterable) and not isinstance(workflows, str | type):
        given = list(workflows)
        wrong = [each for each in given if not isinstance(each, type) or not issubclass(each, Workflow)]
        if not wrong:
            return given
        workflows = wrong[0]
    raise InputError(f"expected a list of Workflow classes, as in [OrderWorkflow], got {shown(workflows)}")


def checked_queues(queues: Any) -> frozenset[str] | None:
    """The queues that a worker takes nodes from; None: all of them."""
    if queues is None:
        return None
    if isinstance(queues, Iterable) and not isinstance(queues, str | bytes):
        given = list(queues)
        if given and all(isinstance(name, str) and name and "/" not in name for name in given):
            return frozenset(given)
    raise _wrong("queues", queues, 'a list of names of queues, as in ["default", "gpu"]')


def checked_modules(modules: Any) -> tuple[str, ...]:
    """Names of modules; whether there are such modules is seen when one of their functions is looked for."""
    if isinstance(modules, Iterable) and not isinstance(modules, str):
        given = tuple(modules)
        wrong = [each for each in given if not isinstance(each, str) or not all(map(str.isidentifier, each.split(".")))]
        if not wrong:
            return given
        modules = wrong[0]
    raise _wrong("jobs", modules, 'a list of names of modules, as in ["shop.jobs"]')


def checked_pipelines(pipelines: Any) -> Iterable[Any]:
    """The pipelines, which are not looked at before a node names one: making them may take long."""
    if isinstance(pipelines, Iterable) and not isinstance(pipelines, str):
        return pipelines
    raise _wrong("pipelines", pipelines, "a list of pipelines")


def check_limits(*, queue_depth: int, **limits: int) -> None:
    check_whole("queue_depth", queue_depth, 0, MAX_LIMIT, "a whole number from 0, with which nothing is claimed ahead")
    for name, value in limits.items():
        check_whole(name, value, 1, MAX_LIMIT, f"a whole number from 1 to {MAX_LIMIT:,}")


def checked_lease(value: Any) -> float:
    seconds = checked_seconds("lease_seconds", value, positive=True)
    if seconds < LEAST_LEASE:
        raise InputError(f"lease_seconds={value}: expected at least {LEAST_LEASE}, or it could not be renewed in time")
    return seconds


def check_home(url: object, runner: object) -> None:
    """What an engine works on, and how."""
    if url is not None and not isinstance(url, str) and not callable(getattr(url, "commit", None)):
        raise InputError(f"Engine({shown(url)}): expected a store or its URL, as in sqlite:///orders.db")
    if runner not in ("local", "celery", None):
        raise InputError(
            f"runner={shown(runner)}: expected 'local', 'celery' for an engine that leaves the work to Celery workers, or None "
            "for one that only starts and looks"
        )


def refuse_while_importing_main() -> None:
    """A process for bodies imports the main module, and would start the same runs again."""
    multiprocessing = sys.modules.get("multiprocessing.process")
    if multiprocessing is not None and getattr(multiprocessing.current_process(), "_inheriting", False):
        raise DefinitionError(
            'a process for bodies (isolation="process") imports the main module, which opens an engine: '
            'put what it does when it is run below `if __name__ == "__main__":`'
        )


def _wrong(name: str, value: object, expected: str) -> InputError:
    return InputError(f"{name}={shown(value)}: expected {expected}")
