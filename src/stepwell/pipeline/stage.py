"""`Stage`: what one stage of a pipeline reads, writes and runs, checked where it is written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from ..base.clock import SECONDS_NEEDED, Duration, in_seconds, is_seconds
from ..base.codec import encode
from ..base.words import shown
from ..errors import DefinitionError, NotJson
from .patterns.pattern import Pattern

if TYPE_CHECKING:
    from ..base.place import SourceLine

OutputKind: TypeAlias = Literal["file", "directory", "members"]
RESERVED = frozenset({"config", "ctx", "entities", "entity", "out"})
"""Parameters of a body, whose names no input can have."""
BACK_OFF = (60.0, 300.0, 900.0, 3_600.0, 14_400.0, 86_400.0)
"""How many seconds to wait after each failure in a row. After one more, the state stays failed until `retry`."""
SOLE = ""
"""The name of the only input or output, which was given without one."""
FILTERS = ("hasFiles",)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")


class Output(NamedTuple):
    """One output of a stage."""

    name: str
    pattern: Pattern
    kind: OutputKind
    extra: tuple[str, ...]
    """Variables to which the body gives values: one entity makes many files."""


class Stage(NamedTuple):
    """One stage. `run` is called for each entity whose outputs are stale."""

    name: str
    inputs: Mapping[str, Pattern]
    outputs: Mapping[str, Output]
    variables: tuple[str, ...]
    """Those that distinguish its entities."""
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
    """The options of its nodes: retry, timeout, isolation, queue ..."""
    place: SourceLine | None
    gates: frozenset[str] = frozenset()
    """Inputs that only have to exist, whatever they contain."""

    @property
    def has_members(self) -> bool:
        return any(output.kind == "members" for output in self.outputs.values())

    @property
    def written(self) -> list[Pattern]:
        return [output.pattern for output in self.outputs.values()]

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
    """Make a stage. DefinitionError lists everything that is wrong with it."""
    problems: list[str] = []
    if not isinstance(name, str) or not _NAME.match(name):
        problems.append(f"{shown(name)} cannot be the name of a stage: expected letters, digits, _ and -")
    inputs = _patterns("input", input, problems)
    collected = (collect,) if isinstance(collect, str) else tuple(collect or ())
    known = [variable for pattern in inputs.values() for variable in pattern.variables]
    problems += [f"collect={variable!r}: no input has this variable" for variable in collected if variable not in known]
    written = _patterns("output", output, problems)
    if not written and not problems:
        problems.append("output=: expected at least one pattern")
    variables = tuple(dict.fromkeys(variable for variable in known if variable not in collected))
    if entities is not None:
        variables = tuple(dict.fromkeys((*variables, *(v for p in written.values() for v in p.variables))))
    elif not input:
        problems.append("expected input=, or entities=: a function that gives the entities")
    outputs = {key: _output(key, pattern, variables, collected, problems) for key, pattern in written.items()}
    problems += [
        f"{option}={shown(value)}: expected a function{' without async' if callable(value) else ''}"
        for option, value in (("entities", entities), ("validate", validate))
        if value is not None and (not callable(value) or iscoroutinefunction(value))
    ]
    quiet_seconds: float = in_seconds(quiet)
    if not is_seconds(quiet_seconds):
        problems.append(f"quiet={shown(quiet_seconds)}: expected {SECONDS_NEEDED}")
    for option, value, least in (("min_size", min_size, 0), ("priority", priority, None), ("limit", limit, 1)):
        whole = isinstance(value, int) and not isinstance(value, bool) and (least is None or value >= least)
        if not whole and (option, value) != ("limit", None):
            from_least = "" if least is None else f" from {least}"
            problems.append(f"{option}={shown(value)}: expected a whole number{from_least}")
    schedule = BACK_OFF if back_off is None else tuple(map(in_seconds, back_off))
    if not all(is_seconds(seconds) for seconds in schedule):
        problems.append(f"back_off={shown(schedule)}: expected {SECONDS_NEEDED} for each failure")
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
        dict(options or {}), place, frozenset(gates),
    )  # fmt: skip


def _patterns(option: str, given: str | Mapping[str, str] | None, problems: list[str]) -> dict[str, Pattern]:
    if given is None:
        return {}
    named = given if isinstance(given, Mapping) else {SOLE: given}
    found = {}
    for name, text in named.items():
        if isinstance(given, Mapping) and (not isinstance(name, str) or not name.isidentifier() or name in RESERVED):
            problems.append(
                f"{option}={{{name!r}: ...}}: expected a name that a parameter can have, and not {', '.join(sorted(RESERVED))}"
            )
            continue
        try:
            found[name] = Pattern(text)
        except DefinitionError as error:
            problems.append(f"{option}={shown(text)}: {error}")
    return found


def _output(
    name: str, pattern: Pattern, variables: Sequence[str], collected: Sequence[str], problems: list[str]
) -> Output:
    extra = tuple(variable for variable in pattern.variables if variable not in variables)
    missing = next((variable for variable in variables if variable not in pattern.variables), None)
    again = next((variable for variable in extra if variable in collected), None)
    problem = None
    if pattern.has_glob:
        problem = "a glob names no file; use a variable whose values the body gives"
    elif missing is not None:
        problem = (
            f"it does not name {{{missing}}}, so several entities would write one state; name it, or make one state of "
            f'many with collect="{missing}"'
        )
    elif again is not None:
        problem = f"{{{again}}} is collected, so the output cannot name it"
    elif extra and pattern.is_directory:
        problem = "one entity makes many files, not many directories"
    if problem is not None:
        problems.append(f"output={pattern.text!r}: {problem}")
    return Output(name, pattern, "members" if extra else "directory" if pattern.is_directory else "file", extra)


def _filters(given: str | Mapping[str, str] | None, inputs: Mapping[str, Pattern]) -> dict[str, str]:
    if given is None:
        return {}
    named = given if isinstance(given, Mapping) else dict.fromkeys(inputs, given)
    for name, text in named.items():
        if text not in FILTERS or name not in inputs:
            raise DefinitionError(f"filter={shown(text)}: there is {', '.join(FILTERS)}, of an input")
    return dict(named)
