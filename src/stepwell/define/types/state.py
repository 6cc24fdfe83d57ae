"""A typed state: a class whose annotations are its fields, each with a reducer and a default.

class State:
    notes: Annotated[list[str], append]  # starts empty, as its reducer says; others need a default
    total: Annotated[int, add] = 10
    best: str = ""                       # no reducer: the last node in the order of the graph decides
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import MISSING
from functools import partial
from typing import Annotated, Any, NamedTuple, get_args, get_origin

from ...base.codec import encode
from ...base.forms.problems import Misfit
from ...base.types.misfit import Unsupported
from ...base.types.shapes import Shape, not_json, shape_of
from ...base.words import briefly
from ...core.kernel.folding import Channel, copied
from ...core.model.outputs import with_delta
from ...errors import DefinitionError, StateError
from ...reducers import add, last
from ..code.address import address_of
from .delta import Delta
from .reducing import ReducerMisfit, begun, delta_annotation, on_stored, refusal, starts_at
from .signatures import STATE, fields_of, hints_of, received

Report = Callable[[str, str], None]


class StateField(NamedTuple):
    """One field of a state."""

    shape: Shape
    delta: Shape
    """What a node may return for it."""
    default: Any
    """As JSON."""
    reducer: Callable[[Any, Any], Any]

    @property
    def is_ours(self) -> bool:
        return getattr(self.reducer, "__module__", None) == last.__module__

    @property
    def reducer_name(self) -> str:
        return self.reducer.__name__ if self.is_ours else address_of(self.reducer)


class StateType:
    """A class that declares a state, read once."""

    def __init__(self, declared: type, fields: Mapping[str, StateField]) -> None:
        self.declared = declared
        self.fields = fields
        self.channels = {
            name: Channel(
                field.default,
                on_stored(field.reducer, field.shape, field.delta),
                _checked_after_folding(field),
                field.is_ours,
            )
            for name, field in fields.items()
        }
        self._view = _view_type(declared, fields)

    @property
    def name(self) -> str:
        return self.declared.__qualname__

    def view(self, values: Mapping[str, Any]) -> Any:
        """The state as a body sees it: an instance of the declared class that cannot be changed."""
        view: Any = object.__new__(self._view)
        object.__setattr__(view, "_stepwell_fields", self.fields)
        object.__setattr__(view, "_stepwell_values", values)
        object.__setattr__(view, "_stepwell_given", {})
        return view

    def encoded(self, delta: Delta, output: bytes, node: str) -> bytes:
        """An output with its delta as stored; a StateError lists everything that is wrong with the delta."""
        problems: list[str] = []
        for name, value in delta.fields.items():
            field = self.fields.get(name)
            if field is None:
                problems.append(f"{name}: there is no such field; there are {', '.join(self.fields)}")
                continue
            problems += _unfit(field.delta, value, name)
        if problems:
            lines = "\n".join(f"  - {problem}" for problem in problems)
            raise StateError(f"node {node!r} returned a Delta that {self.name} refuses:\n{lines}", node=node)
        stored = {name: self.fields[name].delta.stored(value) for name, value in delta.fields.items()}
        return with_delta(output, encode(stored)) if stored else output

    def received(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The values of a state in the types of its fields; DataMisfit if one does not fit."""
        return {name: _received(self.fields[name], name, value) for name, value in values.items()}


def state_of(workflow: type, nodes: Container[str], report: Report) -> StateType | None:
    """The typed state that a workflow class, or one of its bases, declares as `class State`."""
    declared = next((vars(owner)["State"] for owner in workflow.__mro__ if "State" in vars(owner)), None)
    if not isinstance(declared, type):
        return None
    if STATE in nodes:
        report(STATE, "in a workflow with a class State this name means the state; give the node another")
    return state_type(declared, report)


def state_type(declared: type, report: Report) -> StateType | None:
    """The state that a class declares; `report(name, problem)` gets what is wrong with it."""
    prefix = declared.__name__
    annotations = hints_of(declared, "fields", partial(report, prefix))
    if annotations is None:
        return None
    if issubclass(declared, tuple | dict):  # NamedTuple, TypedDict
        report(prefix, "expected a plain class, whose annotations are the fields")
        return None
    fields: dict[str, StateField] = {}
    for name, annotation, default in fields_of(declared, annotations):
        field = _field(name, annotation, default, partial(report, f"{prefix}.{name}"))
        if field is not None:
            fields[name] = field
    if not annotations:
        report(prefix, "it has no fields; write one as notes: Annotated[list[str], append]")
    try:
        return StateType(declared, fields) if fields else None
    except TypeError as error:  # an Enum, a final class ...
        report(prefix, f"expected a plain class, and this one cannot be subclassed: {error}")
        return None


def checked_state(declared: type, what: str, where: str | None = None) -> StateType:
    """The same, but a DefinitionError lists what is wrong."""
    problems: list[str] = []
    state = state_type(declared, lambda name, message: problems.append(f"  - {name}: {message}"))
    if problems or state is None:
        raise DefinitionError("\n".join([f"{what} cannot be a state:", *problems]), where=where)
    return state


def _field(name: str, annotation: Any, default: Any, report: Callable[[str], None]) -> StateField | None:
    plain, reducer = annotation, last
    if get_origin(annotation) is Annotated:
        plain, *rest = get_args(annotation)
        reducers = [each for each in rest if callable(each)]
        if len(reducers) > 1:
            named = ", ".join(getattr(each, "__name__", None) or repr(each) for each in reducers)
            report(f"expected one reducer, got {len(reducers)}: {named}")
            return None
        reducer = reducers[0] if reducers else last
    if name.startswith("_"):
        report("a field cannot begin with an underscore")
        return None
    if default is MISSING:
        default = starts_at(reducer, plain)
    if default is MISSING:
        report("expected a default: what the field is before any node has run")
        return None
    try:
        shape = shape_of(plain)
        problem = refusal(reducer, plain)
        delta = shape_of(delta_annotation(reducer, plain))
    except (Unsupported, ReducerMisfit) as error:
        report(f"a field of a state cannot be {error}" if isinstance(error, Unsupported) else str(error))
        return None
    problems = [problem] if problem else _unfit(shape, default, "its default")
    for each in problems:
        report(each)
    if problems:
        return None
    stored = begun(reducer, copied(default)) if shape.codec is None else shape.codec.encode(default)
    return StateField(shape, delta, stored, reducer)


def _checked_after_folding(field: StateField) -> Callable[[Any, str], Sequence[str]] | None:
    """Of the built-in reducers only `add` can make an invalid value of valid ones: a sum may be too large for JSON."""
    if field.shape.codec is not None:  # it was checked as it was stored
        return None
    return partial(_unfit, field.shape) if field.reducer is add or not field.is_ours else None


def _unfit(shape: Shape, value: Any, name: str) -> Sequence[str]:
    """Why a value does not fit this shape, or cannot be kept."""
    return shape.problems(value, name) or (not_json(value, name) if shape.codec is None else ())


def _view_type(declared: type, fields: Mapping[str, StateField]) -> type:
    """A subclass of the declared class with read-only fields, so that annotations hold and its methods work."""

    def refuse(self: Any, name: str, value: object = None) -> None:
        raise StateError(
            f"state.{name} cannot be assigned: a body returns what it changes, return Delta({name}=...)", field=name
        )

    names: dict[str, Any] = {name: _reader(name) for name in fields}
    names |= {"__setattr__": refuse, "__delattr__": refuse, "__repr__": _repr, "__module__": declared.__module__}
    return type(declared.__name__, (declared,), {**names, "__qualname__": declared.__qualname__})


def _reader(name: str) -> property:
    def read(self: Any) -> Any:
        given = self._stepwell_given
        if name not in given:
            given[name] = _received(self._stepwell_fields[name], name, self._stepwell_values[name])
        return given[name]

    return property(read)


def _received(field: StateField, name: str, value: Any) -> Any:
    """A copy in the type of the field."""
    return received(field.shape, copied(value), f"state.{name}")


def _repr(self: Any) -> str:
    fields = ", ".join(f"{name}={briefly(value)}" for name, value in self._stepwell_values.items())
    return f"{type(self).__name__}({fields})"


def check_unchanged(view: Any, node: str) -> None:
    """Refuse a change of a list or dict of the state in place: it is a copy, and the change would be lost silently."""
    for name, given in view._stepwell_given.items():
        if _stored_again(view._stepwell_fields[name], given) != view._stepwell_values[name]:
            raise StateError(
                f"node {node!r} changed state.{name} in place, which changes nothing for others: leave it as it is and "
                f"return what is new, return Delta({name}=...)",
                field=name,
                node=node,
            )


def _stored_again(field: StateField, given: Any) -> Any:
    try:
        return field.shape.stored(given)
    except Misfit:  # it was changed into something that does not even fit
        return MISSING
