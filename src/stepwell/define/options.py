"""The options of nodes and workflows, checked where they are written."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from ..base.clock import Duration
from ..base.place import SourceLine
from ..base.words import shown
from ..core.graph import MAX_NAME, NO_ARGS, NODE_OPTIONS, Body, JobOptions, NodeSpec, Retry, SideEffects, is_text
from ..errors import DefinitionError
from .code.address import find_retry_on, is_address, loaded

OnFailure: TypeAlias = Literal["fail_fast", "finish", "pause"]


class Options(NamedTuple):
    """Checked options of one node: those that were written, even with their default."""

    written: Mapping[str, Any] = NO_ARGS

    def under(self, defaults: NodeDefaults) -> Options:
        """The same with the defaults of the workflow for options that were not written."""
        if defaults == NO_DEFAULTS:
            return self
        inherited = {name: value for name, value in defaults._asdict().items() if value is not None}
        return Options({**inherited, **self.written})

    @property
    def idempotency_key(self) -> Callable[..., Any] | None:
        key: Callable[..., Any] | None = self.written.get("idempotency_key")
        return key

    @property
    def when(self) -> Callable[..., Any] | str | None:
        """The condition as it was written. A NodeSpec has its name."""
        condition: Callable[..., Any] | str | None = self.written.get("when")
        return condition

    def of_spec(self, is_async: bool) -> dict[str, Any]:
        """The fields of a NodeSpec, but for its condition. The body runs in a process if asked for, else on the loop or in a
        thread."""
        in_process = self.written.get("isolation") == "process"
        body: Body = "process" if in_process else "loop" if is_async else "thread"
        fields = NodeSpec._fields
        return {name: value for name, value in self.written.items() if name in fields and name != "when"} | {
            "body": body
        }


_PLAIN = Options()
_BY_NAME = {option.name: option for option in NODE_OPTIONS}


def checked_options(place: SourceLine, given: JobOptions, allowed: type = JobOptions) -> Options:
    """The options of one node, or a DefinitionError that shows the line."""
    if not given:
        return _PLAIN
    known = {*allowed.__annotations__, *JobOptions.__annotations__}
    unknown = given.keys() - known
    if unknown:
        raise DefinitionError(f"there is no option {min(unknown)!r}; there are {', '.join(sorted(known))}", where=place)
    written = {name: _checked(name, value, place) for name, value in given.items()}
    if written.get("requires_idempotency") and written.get("idempotency_key") is None:
        raise DefinitionError(
            "requires_idempotency=True: say what makes two tries the same, as in "
            'idempotency_key=lambda self: f"order-{self.order_id}"',
            where=place,
        )
    if written.get("retry") is not None:
        written["retry"] = _checked_retry(written["retry"], place, by_name=allowed is JobOptions)
    return Options(written)


def _checked(name: str, value: Any, place: SourceLine, keyword: str | None = None) -> Any:
    """A value of an option, as NodeSpec takes it."""
    option = _BY_NAME[name]
    converted = option.of_code(value)
    if not option.fits(converted):
        raise DefinitionError(f"{keyword or name}={shown(value)}: expected {option.expected}", where=place)
    return converted


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
        _checked("side_effects", side_effects, place)
    run_limit = _checked("timeout", inherited.deadline if deadline is None else deadline, place, "deadline")
    node_limit = inherited.nodes.timeout if node_timeout is None else node_timeout
    return RunOptions(
        on_failure, run_limit, NodeDefaults(_checked("timeout", node_limit, place, "node_timeout"), side_effects)
    )


def checked_name(name: str, place: SourceLine) -> str:
    """A printable name: control characters could command a terminal."""
    if not is_text(name):
        raise DefinitionError(f"{shown(name)} cannot be a name: expected some text", where=place)
    if len(name) > MAX_NAME or not name.isprintable():
        raise DefinitionError(
            f"{reprlib.repr(name)} cannot be a name: expected 1 to {MAX_NAME} printable characters, and no line ends",
            where=place,
        )
    return name


def checked_workflow_name(name: str, place: SourceLine) -> str:
    if checked_name(name, place).startswith("@"):
        message = f"{reprlib.repr(name)} cannot be the name of a workflow: names that begin with @ are Stepwell's own"
        raise DefinitionError(message, where=place)
    return name


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
            raise DefinitionError(f"retry_on={name}: this name leads to something else", where=place)
    if retry is None or not retry.unchecked:
        return retry
    try:
        return retry.looked_up({name: find_retry_on(name) for name in retry.unchecked})
    except DefinitionError as error:
        raise DefinitionError(f"retry_on={error}", where=place) from error


def _check_choice(option: str, value: str, choices: tuple[str, ...], place: SourceLine) -> None:
    if value not in choices:
        raise DefinitionError(f"{option}={shown(value)}: expected one of {', '.join(choices)}", where=place)
