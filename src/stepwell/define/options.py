"""The options of nodes and workflows, checked where they are written."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple, TypeAlias, TypedDict, get_args

from ..base.clock import POSITIVE_SECONDS_NEEDED, Duration, in_seconds, is_seconds
from ..base.place import SourceLine
from ..base.words import shown
from ..core.graph import DEFAULT_QUEUE, MAX_NAME, Body, NodeSpec, OnLost, Retry, SideEffects
from ..errors import DefinitionError
from .code.address import find_retry_on, is_address, loaded

Isolation: TypeAlias = Literal["thread", "process"]
OnFailure: TypeAlias = Literal["fail_fast", "finish", "pause"]


class JobOptions(TypedDict, total=False):
    """The options of any node: keywords of `step`, `task`, `node` and `fan_out`."""

    retry: Retry | int | None
    timeout: Duration | None
    on_lost: OnLost
    isolation: Isolation
    queue: str
    side_effects: SideEffects
    transaction: bool


class MethodOptions(JobOptions, total=False):
    """The options of a method."""

    idempotency_key: Callable[..., Any] | None
    requires_idempotency: bool
    was: str | Iterable[str] | None


class Options(NamedTuple):
    """Checked options of one node."""

    retry: Retry | None = None
    timeout: float | None = None
    on_lost: OnLost = "rerun"
    isolation: Isolation = "thread"
    queue: str = DEFAULT_QUEUE
    side_effects: SideEffects = "opaque"
    transaction: bool = False
    idempotency_key: Callable[..., Any] | None = None
    requires_idempotency: bool = False
    """Whether the node is refused without a key of its own."""
    was: tuple[str, ...] = ()
    given: frozenset[str] = frozenset()
    """Those that were written, even with their default: defaults of the workflow do not change them."""

    def under(self, defaults: NodeDefaults) -> Options:
        """The same with the defaults of the workflow for options that were not written."""
        if defaults == NO_DEFAULTS:
            return self
        said = {name: value for name, value in defaults._asdict().items() if value is not None}
        return self._replace(**{name: value for name, value in said.items() if name not in self.given})

    def of_spec(self, is_async: bool) -> dict[str, Any]:
        """The fields of a NodeSpec. The body runs in a process if asked for, else on the loop or in a thread."""
        body: Body = "process" if self.isolation == "process" else "loop" if is_async else "thread"
        return {name: getattr(self, name) for name in _OF_SPEC} | {"body": body}


_OF_SPEC = tuple(name for name in Options._fields if name in NodeSpec._fields)
_PLAIN = Options()


def checked_options(place: SourceLine, given: JobOptions, allowed: type = JobOptions) -> Options:
    """The options of one node, or a DefinitionError that shows the line."""
    if not given:
        return _PLAIN
    unknown = given.keys() - allowed.__annotations__.keys() - JobOptions.__annotations__.keys()
    if unknown:
        known = ", ".join(sorted({*allowed.__annotations__, *JobOptions.__annotations__}))
        raise DefinitionError(f"there is no option {min(unknown)!r}; there are {known}", where=place)
    options = Options(**given, given=frozenset(given))  # type: ignore[arg-type]  # checked now
    for name, kind in (("on_lost", OnLost), ("isolation", Isolation), ("side_effects", SideEffects)):
        _check_choice(name, getattr(options, name), get_args(kind), place)
    for flag in ("transaction", "requires_idempotency"):
        if not isinstance(getattr(options, flag), bool):
            raise DefinitionError(f"{flag}={shown(getattr(options, flag))}: True or False is needed", where=place)
    if options.idempotency_key is not None and not callable(options.idempotency_key):
        raise DefinitionError(
            f"idempotency_key={options.idempotency_key!r}: a function of self is needed, as in "
            f'lambda self: f"order-{{self.order_id}}"',
            where=place,
        )
    if options.requires_idempotency and options.idempotency_key is None:
        raise DefinitionError(
            "requires_idempotency=True: say what makes two tries the same, as in "
            'idempotency_key=lambda self: f"order-{self.order_id}"',
            where=place,
        )
    if not _is_text(options.queue) or "/" in options.queue:
        raise DefinitionError(f"queue={options.queue!r}: a name without '/' is needed", where=place)
    return options._replace(
        retry=_checked_retry(Retry.of(options.retry), place, by_name=allowed is JobOptions),
        timeout=_checked_limit(options.timeout, place),
        was=_checked_former_names(given.get("was"), place),
    )


class NodeDefaults(NamedTuple):
    """The defaults of a workflow for its nodes."""

    timeout: float | None = None
    side_effects: SideEffects | None = None


NO_DEFAULTS = NodeDefaults()


class RunOptions(NamedTuple):
    """The checked options of a workflow."""

    on_failure: OnFailure = "fail_fast"
    deadline: float | None = None
    nodes: NodeDefaults = NO_DEFAULTS


def checked_run_options(
    on_failure: OnFailure | None,
    deadline: Duration | None,
    node_timeout: Duration | None,
    side_effects: SideEffects | None,
    place: SourceLine,
    inherited: RunOptions | None = None,
) -> RunOptions:
    """What is left out is inherited."""
    inherited = inherited or RunOptions()
    on_failure = inherited.on_failure if on_failure is None else on_failure
    side_effects = inherited.nodes.side_effects if side_effects is None else side_effects
    _check_choice("on_failure", on_failure, get_args(OnFailure), place)
    if side_effects is not None:
        _check_choice("side_effects", side_effects, get_args(SideEffects), place)
    run_limit = _checked_limit(inherited.deadline if deadline is None else deadline, place, "deadline")
    node_limit = inherited.nodes.timeout if node_timeout is None else node_timeout
    return RunOptions(
        on_failure, run_limit, NodeDefaults(_checked_limit(node_limit, place, "node_timeout"), side_effects)
    )


def checked_name(name: str, place: SourceLine) -> str:
    """A printable name: control characters could command a terminal."""
    if not _is_text(name):
        raise DefinitionError(f"{shown(name)} cannot be a name: some text is needed", where=place)
    if len(name) > MAX_NAME or not name.isprintable():
        raise DefinitionError(
            f"{reprlib.repr(name)} cannot be a name: 1 to {MAX_NAME} printable characters are needed, and no line ends",
            where=place,
        )
    return name


def _checked_former_names(was: Any, place: SourceLine) -> tuple[str, ...]:
    """The former names of a node, each once, in the order of writing."""
    given = () if was is None else (was,) if isinstance(was, str) or not isinstance(was, Iterable) else tuple(was)
    for each in given:
        if not _is_text(each):
            raise DefinitionError(
                f"was={each!r}: the name this node had in an earlier version is needed, or a list of such names",
                where=place,
            )
    return tuple(dict.fromkeys(given))


def _checked_limit(given: Duration | None, place: SourceLine, option: str = "timeout") -> float | None:
    """Always a float, so that `timeout=30` and `timeout=30.0` are the same graph."""
    if given is None:
        return None
    seconds = in_seconds(given)
    if not is_seconds(seconds, positive=True):
        raise DefinitionError(f"{option}={shown(given)}: {POSITIVE_SECONDS_NEEDED} is needed", where=place)
    return float(seconds)


def _checked_retry(retry: Retry | None, place: SourceLine, *, by_name: bool) -> Retry | None:
    """Look up the names in `retry_on`: a name that leads nowhere would never match.

    `by_name`: the node stores only names, so a function must be found by its own.
    """
    for name, function in () if retry is None or not by_name else retry.functions:
        if not is_address(name):
            raise DefinitionError(
                f"retry_on={name.partition(':')[2]}: only its name is stored, and no other process finds a lambda or a "
                f"function inside a function by its name; move it to the top level of its module",
                where=place,
            )
        if loaded(name) is not function:
            raise DefinitionError(f"retry_on={name}: this name leads to something else than it", where=place)
    if retry is None or not retry.unchecked:
        return retry
    try:
        return retry.looked_up({name: find_retry_on(name) for name in retry.unchecked})
    except DefinitionError as error:
        raise DefinitionError(f"retry_on={error}", where=place) from error


def _is_text(value: object) -> bool:
    """Whether a value is storable text: not empty, and without half a surrogate pair."""
    if not isinstance(value, str) or not value.strip():
        return False
    try:
        return value.isascii() or bool(value.encode())
    except UnicodeEncodeError:
        return False


def _check_choice(option: str, value: str, choices: tuple[str, ...], place: SourceLine) -> None:
    if value not in choices:
        raise DefinitionError(f"{option}={shown(value)}: one of {', '.join(choices)} is needed", where=place)
