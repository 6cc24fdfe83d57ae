"""The arguments of a stage's body: inputs in the form that its annotations ask for, and where to write."""

from __future__ import annotations

import json
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

from ...errors import DefinitionError, InputError
from ..entity import Entity
from ..stage import RESERVED, SOLE, Stage


class InputParameter(NamedTuple):
    """How one parameter takes an input."""

    input: str
    many: bool
    form: Any
    """Path, str, bytes, or the type of JSON data."""


class BodyParameters(NamedTuple):
    """The parameters of a body."""

    inputs: Mapping[str, InputParameter]
    special: frozenset[str]
    """Of `RESERVED`: entity, entities, out, ctx, config."""
    is_async: bool


def signature_of(stage: Stage) -> BodyParameters:
    """What the function of a stage asks for, or a DefinitionError: checked when the stage is written."""
    function = stage.function
    assert function is not None
    where = None if stage.place is None else str(stage.place)
    parameters = _parameters(function)
    hints = _hints(function)
    special = frozenset(name for name in parameters if name in RESERVED)
    named = [name for name in parameters if name not in RESERVED]
    inputs: dict[str, InputParameter] = {}
    sole = stage.inputs.get(SOLE)
    for name in named:
        if sole is not None and len(named) == 1:
            source = SOLE
        elif name in stage.inputs:
            source = name
        elif parameters[name]:
            continue
        else:
            has = ", ".join(sorted([key for key in stage.inputs if key] or ["the input"]))
            raise DefinitionError(
                f"stage {stage.name!r}: the parameter {name!r} of {function.__name__} is no input; there are {has}, and "
                f"{', '.join(sorted(RESERVED))}",
                where=where,
            )
        inputs[name] = _taken(stage, source, name, hints.get(name), where)
    return BodyParameters(inputs, special, _is_async(function))


def _parameters(function: Callable[..., Any]) -> dict[str, bool]:
    """The parameters by name, and whether each may be left out. Of plain functions, without loading `inspect`."""
    if isinstance(function, FunctionType) and "__wrapped__" not in function.__dict__:
        code = function.__code__
        positional, keywords = code.co_argcount, code.co_kwonlyargcount
        optional = {
            *code.co_varnames[positional - len(function.__defaults__ or ()) : positional],
            *(function.__kwdefaults__ or ()),
        }
        return {name: name in optional for name in code.co_varnames[: positional + keywords]}
    import inspect

    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    given = inspect.signature(function).parameters.items()
    return {name: each.default is not inspect.Parameter.empty for name, each in given if each.kind not in variable}


def _is_async(function: Callable[..., Any]) -> bool:
    if isinstance(function, FunctionType):
        return bool(function.__code__.co_flags & _COROUTINE)
    import inspect

    return inspect.iscoroutinefunction(function)


_COROUTINE = 0x80
"""`inspect.CO_COROUTINE`"""


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function)
    except Exception:  # names that are not there at run time, as below TYPE_CHECKING
        return {}


def _taken(stage: Stage, source: str, name: str, annotation: Any, where: str | None) -> InputParameter:
    pattern = stage.inputs[source]
    collected = any(variable in stage.collect for variable in pattern.variables)
    many = (pattern.has_glob and not pattern.is_directory) or collected
    if annotation is None:
        return InputParameter(source, many, Path)
    form = annotation
    if many:
        if typing.get_origin(annotation) in (list, Sequence) or annotation is list:
            form = (*typing.get_args(annotation), Path)[0]
        else:
            raise DefinitionError(
                f"stage {stage.name!r}: {name}: {annotation} is one thing, but {pattern.text} gives many: expected list[...]",
                where=where,
            )
    if form in (Path, str, bytes):
        if pattern.is_directory and form is not Path:
            raise DefinitionError(f"stage {stage.name!r}: {name}: a directory is given as Path", where=where)
        return InputParameter(source, many, form)
    from ...base.types.misfit import Unsupported
    from ...base.types.shapes import shape_of

    try:
        shape_of(form)
    except Unsupported as problem:
        raise DefinitionError(
            f"stage {stage.name!r}: {name}: Path, str and bytes, or JSON: {problem}", where=where
        ) from None
    return InputParameter(source, many, form)


def converted(content: bytes, form: Any, path: str) -> Any:
    """The content of a file in the form that a parameter asks for."""
    if form is bytes:
        return content
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is no UTF-8 text ({error}); take it as bytes, or as Path") from None
    if form is str:
        return text
    try:
        value = json.loads(text)
    except ValueError as error:
        raise InputError(f"{path} is no JSON: {error}") from None
    from ...base.types.shapes import shape_of

    problems = shape_of(form).problems(value, path)
    if problems:
        raise InputError("; ".join(problems[:5]))
    return value


def entities_of(stage: Stage, paths: Mapping[str, Sequence[str]]) -> list[Entity]:
    """Of a stage that collects: the entities it collects, each with the path of its input."""
    found: dict[str, Entity] = {}
    for name, pattern in stage.inputs.items():
        if any(variable in stage.collect for variable in pattern.variables):
            for path in paths.get(name, ()):
                values = pattern.match(path)
                if values is not None:
                    entity = Entity(
                        {variable: values[variable] for variable in stage.collect if variable in values}, path
                    )
                    found.setdefault(entity.id, entity)
    return list(found.values())
