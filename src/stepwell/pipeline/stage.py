"""`Stage`: what one stage of a pipeline reads, writes and runs, checked where it is written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from ..clock import SECONDS_NEEDED, Duration, in_seconds, is_seconds
from ..codec import encode
from ..errors import DefinitionError, NotJson
from ..words import shown
from .patterns.pattern import Pattern

if TYPE_CHECKING:
    from ..place import SourceLine

OutputKind: TypeAlias = Literal["file", "directory", "members"]
RESERVED = frozenset({"config", "ctx", "entities", "entity", "out"})
"""Parameters of a body that no input can have the name of."""
BACK_OFF = (60.0, 300.0, 900.0, 3_600.0, 14_400.0, 86_400.0)
"""Seconds after each failure in a row; after the last of them it stays failed until somebody asks."""
SOLE = ""
"""The name of an input or output that was given without one."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")


class Output(NamedTuple):
    """One output of a stage."""

    name: str
    pattern: Pattern
    kind: OutputKind
    extra: tuple[str, ...]
    """Variables whose values the body gives: one entity makes many files."""


class Stage(NamedTuple):
    """One stage. `run` is called for each entity whose outputs are stale."""

    name: str
    inputs: Mapping[str, Pattern]
    outputs: Mapping[str, Output]
    variables: tuple[str, ...]
    """What tells its entities apart."""
    collect: tuple[str, ...]
    function: Callable[..., Any] | None
    handler: str | None
    config: Mapping[str, Any]
    entities: Callable[[], Iterable[Any]] | None
    filters: Mapping[str, str]
    min_size: int
    validate: Callable[..., Any] | None
    quiet: float
    priority: int
    limit: int | None
    back_off: tuple[float, ...]
    version: str | None
    uses: tuple[Any, ...]
    options: Mapping[str, Any]
    """Those of a node: retry, timeout, isolation, queue ..."""
    place: SourceLine | None
    gates: frozenset[str] = frozenset()
    """Inputs that only have to be there, whatever is in them."""

    @property
    def has_members(self) -> bool:
        return any(output.kind == "members" for output in self.outputs.values())

    def entity_id(self, key: Sequence[str]) -> str:
        return "/".join(key)

    def values(self, key: Sequence[str]) -> dict[str, str]:
        return dict(zip(self.variables, key, strict=True))


def make_stage(
    name: str,
    *,
    input: str | Mapping[str, str] | None,
    output: str | Mapping[str, str],
    collect: str | Iterable[str] | None = None,
    function: Callable[..., Any] | None = None,
    handler: str | None = None,
    config: Mapping[str, Any] | None = None,
    entities: Callable[[], Iterable[Any]] | None = None,
    filter: str | Mapping[str, str] | None = None,
    min_size: int = 0,
    validate: Callable[..., Any] | None = None,
    quiet: Duration = 0.0,
    priority: int = 0,
    limit: int | None = None,
    back_off: Iterable[Duration] | None = None,
    version: str | None = None,
    uses: Iterable[Any] = (),
    options: Mapping[str, Any] | None = None,
    place: SourceLine | None = None,
    gates: Iterable[str] = (),
) -> Stage:
    """A stage, or a DefinitionError that lists everything that is wrong with it."""
    problems: list[str] = []

    def attempt(make: Callable[[], Any], otherwise: Any) -> Any:
        try:
            return make()
        except DefinitionError as error:
            problems.append(str(error))
            return otherwise

    if not isinstance(name, str) or not _NAME.match(name):
        problems.append(f"{shown(name)} cannot be the name of a stage: letters, digits, _ and - are needed")
    inputs: dict[str, Pattern] = attempt(lambda: _patterns("input", input), {})
    collected = (collect,) if isinstance(collect, str) else tuple(collect or ())
    known = [variable for pattern in inputs.values() for variable in pattern.variables]
    problems += [f"collect={variable!r}: no input has this variable" for variable in collected if variable not in known]
    written: dict[str, Pattern] = attempt(lambda: _patterns("output", output), {})
    if not written and not problems:
        problems.append("output=: at least one pattern is needed")
    variables = tuple(dict.fromkeys(variable for variable in known if variable not in collected))
    if entities is not None:
        variables = tuple(dict.fromkeys((*variables, *(v for p in written.values() for v in p.variables))))
    elif not inputs:
        problems.append("input= is needed, or entities=: a function that gives the entities")
    outputs: dict[str, Output] = {}
    for key, pattern in written.items():
        try:
            outputs[key] = _output(key, pattern, variables, collected)
        except DefinitionError as error:
            problems.append(str(error))
    problems += [
        f"{option}={shown(value)}: a function is needed"
        for option, value in (("entities", entities), ("validate", validate))
        if value is not None and not callable(value)
    ]
    quiet_seconds: float = in_seconds(quiet)
    problems += _numbers(min_size=min_size, priority=priority, limit=limit, quiet=quiet_seconds)
    schedule = BACK_OFF if back_off is None else tuple(map(in_seconds, back_off))
    if not all(is_seconds(seconds) for seconds in schedule):
        problems.append(f"back_off={shown(schedule)}: {SECONDS_NEEDED} is needed for each failure")
    try:
        encode(dict(config or {}))
    except (NotJson, TypeError, ValueError) as error:
        problems.append(f"config={shown(config)}: it is kept as JSON, and {error}")
    if problems:
        raise DefinitionError(
            f"stage {name!r}: " + ("\n  - ".join(["", *problems]) if len(problems) > 1 else problems[0]),
            where=None if place is None else str(place),
        )
    return Stage(
        name, inputs, outputs, variables, collected, function, handler, dict(config or {}), entities,
        _filters(filter, inputs), min_size, validate, float(quiet_seconds), priority, limit, schedule, version, tuple(uses),
        dict(options or {}), place,
        frozenset(gates),
    )  # fmt: skip


def _patterns(option: str, given: str | Mapping[str, str] | None) -> dict[str, Pattern]:
    if given is None:
        return {}
    named = given if isinstance(given, Mapping) else {SOLE: given}
    problems = []
    found = {}
    for name, text in named.items():
        if isinstance(given, Mapping) and (not isinstance(name, str) or not name.isidentifier() or name in RESERVED):
            problems.append(
                f"{option}={{{name!r}: ...}}: a name is needed that a parameter can have, and not {', '.join(sorted(RESERVED))}"
            )
            continue
        try:
            found[name] = Pattern(text)
        except DefinitionError as error:
            problems.append(f"{option}={shown(text)}: {error}")
    if problems:
        raise DefinitionError("; ".join(problems))
    return found


def _output(name: str, pattern: Pattern, variables: Sequence[str], collected: Sequence[str]) -> Output:
    if pattern.has_glob:
        raise DefinitionError(
            f"output={pattern.text!r}: a glob names no file; use a variable whose values the body gives"
        )
    missing = [variable for variable in variables if variable not in pattern.variables]
    if missing:
        raise DefinitionError(
            f"output={pattern.text!r}: it does not name {{{missing[0]}}}, so several entities would write one state; name "
            f'it, or collect="{missing[0]}" makes one state of many'
        )
    extra = tuple(variable for variable in pattern.variables if variable not in variables)
    again = [variable for variable in extra if variable in collected]
    if again:
        raise DefinitionError(f"output={pattern.text!r}: {{{again[0]}}} is collected, so the output cannot name it")
    if extra and pattern.is_directory:
        raise DefinitionError(f"output={pattern.text!r}: one entity makes many files, not many directories")
    kind: OutputKind = "members" if extra else "directory" if pattern.is_directory else "file"
    return Output(name, pattern, kind, extra)


def _numbers(**given: Any) -> list[str]:
    problems = []
    for name, value in given.items():
        if name == "quiet":
            if not is_seconds(value):
                problems.append(f"quiet={shown(value)}: {SECONDS_NEEDED} is needed")
        elif name == "limit" and value is None:
            continue
        elif (
            isinstance(value, bool) or not isinstance(value, int) or (name != "priority" and value < (name == "limit"))
        ):
            least = "" if name == "priority" else f" from {int(name == 'limit')}"
            problems.append(f"{name}={shown(value)}: a whole number{least} is needed")
    return problems


FILTERS = ("hasFiles",)


def _filters(given: str | Mapping[str, str] | None, inputs: Mapping[str, Pattern]) -> dict[str, str]:
    if given is None:
        return {}
    named = given if isinstance(given, Mapping) else dict.fromkeys(inputs, given)
    for name, text in named.items():
        if text not in FILTERS or name not in inputs:
            raise DefinitionError(f"filter={shown(text)}: there is {', '.join(FILTERS)}, of an input")
    return dict(named)
