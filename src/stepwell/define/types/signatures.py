"""The parameters of a body and its annotations: what is filled in, which values are converted, and what it returns."""

from __future__ import annotations

import collections.abc
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING
from functools import partial
from types import MappingProxyType, NoneType, UnionType
from typing import Any, ClassVar, NamedTuple, Never, NoReturn, Union, get_args, get_origin, get_type_hints

from ...base.forms.problems import Misfit
from ...base.performer import Performer
from ...base.place import neighbours
from ...base.types.misfit import Unsupported
from ...base.types.shapes import Shape, shape_of
from ...errors import DataMisfit
from .delta import Delta

Report = Callable[[str], None]

CONTEXT = "ctx"
STATE = "state"
RETURN = "return"
_NOTHING: Mapping[str, Shape] = MappingProxyType({})
_SAYS_NOTHING = (Any, object, Never, NoReturn, inspect.Signature.empty)
_LATER = (collections.abc.Coroutine, collections.abc.Awaitable)
_NONE = shape_of(None)


class Parameters(NamedTuple):
    """The parameters of a function that can be given by name."""

    names: tuple[str, ...]
    required: tuple[str, ...]
    """Those without a default; also positional-only ones, which cannot be filled by name."""
    has_self: bool

    @property
    def takes_ctx(self) -> bool:
        return CONTEXT in self.names

    @property
    def takes_state(self) -> bool:
        return STATE in self.names


def parameters_of(function: Callable[..., Any], *, method: bool = False) -> Parameters:
    """The parameters of `function`, without the `self` of a method."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some functions written in C have no signature
        return Parameters((), (), False)
    has_self = method and bool(parameters) and parameters[0].kind is not inspect.Parameter.KEYWORD_ONLY
    if has_self and parameters[0].kind is not inspect.Parameter.VAR_POSITIONAL:
        del parameters[0]
    named = [each for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
    positional = [each for each in parameters if each.kind is each.POSITIONAL_ONLY]
    return Parameters(
        tuple(each.name for each in named),
        tuple(each.name for each in [*positional, *named] if each.default is each.empty),
        has_self,
    )


def yields(function: Callable[..., Any]) -> bool:
    """Whether calling `function` gives a generator instead of a result."""
    return inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)


class Signature(NamedTuple):
    """The annotations of a body."""

    parameters: Mapping[str, Shape] = _NOTHING
    """Those whose values are converted; plain JSON is passed on."""
    returns: Shape | None = None
    """None: it may return anything."""

    subject: str = "its parameter"

    def convert(self, values: dict[str, Any]) -> None:
        """Convert stored values to the types of the parameters, in place; DataMisfit if one does not fit."""
        for name, shape in self.parameters.items():
            if name in values:
                values[name] = received(shape, values[name], f"{self.subject} {name!r}")


SAYS_NOTHING = Signature()


def received(shape: Shape, data: Any, what: str) -> Any:
    """Stored data as the type of `what`; DataMisfit if it does not fit."""
    try:
        return shape.received(data)
    except Misfit as misfit:
        raise DataMisfit(what, shape.text, [problem.below("$") for problem in misfit.problems]) from None


def signature_of(
    function: Callable[..., Any], filled: Iterable[str], report: Report, scope: Mapping[str, Any] | None = None
) -> Signature:
    """The annotations of a body, for parameters that are `filled` from the store. `report` gets what is wrong.

    `scope` has the local names where it is written.
    """
    shapes = dict(shapes_of(function, (*filled, RETURN), lambda _, problem: report(problem), scope))
    if not shapes:
        return SAYS_NOTHING
    returns = shapes.pop(RETURN, None)
    return Signature({name: shape for name, shape in shapes.items() if shape.codec is not None} or _NOTHING, returns)


def shapes_of(
    function: Callable[..., Any],
    names: Iterable[str],
    report: Callable[[str, str], None],
    scope: Mapping[str, Any] | None = None,
) -> Mapping[str, Shape]:
    """The types of these parameters and of "return", where an annotation says something."""
    plain = inspect.unwrap(function)
    written = getattr(plain, "__annotations__", None) or _NOTHING
    shapes: dict[str, Shape] = {}
    for name in names if written else ():
        if name in written:
            what = "what it returns" if name == RETURN else f"its parameter {name!r}"
            shape = _shape(plain, written[name], scope, partial(report, name), what, returned=name == RETURN)
            if shape is not None:
                shapes[name] = shape
    return shapes


def _shape(
    function: Callable[..., Any],
    written: Any,
    scope: Mapping[str, Any] | None,
    report: Report,
    what: str,
    *,
    returned: bool = False,
) -> Shape | None:
    if written is None or written == "None":
        return _NONE
    try:
        annotation = evaluated(function, written, scope)
    except Exception as error:
        report(
            f"the annotation of {what} cannot be read ({type(error).__name__}: {error}); it is read at run time too, so "
            f"import what it names at the top of the module, and not only for type checkers"
        )
        return None
    if returned:
        annotation = _output(annotation)
    if annotation in _SAYS_NOTHING:
        return None
    try:
        return shape_of(annotation)
    except Unsupported as error:
        report(f"{what} cannot be {error}")
        return None


def evaluated(function: Callable[..., Any], written: Any, scope: Mapping[str, Any] | None = None) -> Any:
    """Evaluate one annotation of a function; others may name what only type checkers know."""
    if isinstance(written, type) and not get_args(written):
        return written

    def holder() -> None: ...

    holder.__annotations__ = {"it": written}
    names: Any = {} if scope is None else scope  # it may be large, so it is not copied
    hint: Any = get_type_hints(holder, getattr(function, "__globals__", {}), names, include_extras=True)["it"]
    return hint


def _output(annotation: Any) -> Any:
    """The type of the stored output: that of a Delta's output, or of an awaited result; of a run that performs the node any."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is Delta or (isinstance(annotation, type) and issubclass(annotation, Performer)):
        return Any
    if origin is Delta or origin in _LATER:
        return _output(arguments[-1])
    if origin is Union or origin is UnionType:
        outputs = [_output(each) for each in arguments]
        if outputs != list(arguments):
            return Any if Any in outputs else Union[tuple(outputs)]  # noqa: UP007  # it is made at run time
    return NoneType if annotation is None else annotation


def hints_of(cls: type, what: str, report: Report) -> dict[str, Any] | None:
    """The annotations of a class whose `what` they declare; None if they cannot be read, which is reported.

    A class inside a function may name what is defined there.
    """
    try:
        try:
            return get_type_hints(cls, include_extras=True)
        except NameError:
            return get_type_hints(cls, localns=names_where_written(cls), include_extras=True)
    except Exception as error:
        report(
            f"an annotation cannot be read ({type(error).__name__}: {error}); what {what} are annotated with is read at run "
            f"time too, so import it at the top of the module"
        )
        return None


def fields_of(cls: type, annotations: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """The fields that annotations declare: name, annotation and default, MISSING where there is none.

    Not by getattr, which would find `register` or `mro` in the type of the class.
    """
    for name, annotation in annotations.items():
        if annotation is not ClassVar and get_origin(annotation) is not ClassVar:
            yield name, annotation, next((vars(owner)[name] for owner in cls.__mro__ if name in vars(owner)), MISSING)


def names_where_written(cls: type | None = None) -> dict[str, Any]:
    """The names that can be used where a workflow is written, also in a function, and in its class body."""
    return {**neighbours(), **({} if cls is None else vars(cls))}
