"""Typed inputs: the annotations of a workflow class, and the check of values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING
from functools import partial
from typing import Any, NamedTuple

from ...base.types.misfit import Unsupported
from ...base.types.shapes import Shape, shape_of
from ...errors import InputError
from ..classes.decorators import declared
from ..code.invoke import copied_values
from .signatures import fields_of, hints_of, received


class Input(NamedTuple):
    """One input of a workflow."""

    name: str
    shape: Shape
    default: Any

    @property
    def required(self) -> bool:
        return self.default is MISSING


def inputs_of(cls: type, report: Callable[[str, str], None]) -> dict[str, Input]:
    """The inputs that the annotations of a class declare; `report(name, problem)` gets what is wrong with them."""
    annotations = hints_of(cls, "inputs", partial(report, cls.__name__))
    inputs: dict[str, Input] = {}
    for name, annotation, default in fields_of(cls, annotations or {}):
        try:
            shape = shape_of(annotation)
        except Unsupported as error:
            report(name, f"an input cannot be {error}")
            continue
        if default is not MISSING and declared(default) is None:  # an input that is also a node is reported elsewhere
            for problem in shape.problems(default, "its default"):
                report(name, problem)
        inputs[name] = Input(name, shape, default)
    return inputs


def misfits(inputs: Mapping[str, Input], values: Mapping[str, Any]) -> dict[str, list[str]]:
    """By input: why its value is refused, or that it is missing."""
    by_input: dict[str, list[str]] = {}
    for name, each in inputs.items():
        if name in values:
            problems = list(each.shape.problems(values[name], name))
        else:
            problems = [f"{name}: this input is missing, expected {each.shape.text}"] if each.required else []
        if problems:
            by_input[name] = problems
    return by_input


def checked(workflow: str, inputs: Mapping[str, Input], values: Mapping[str, Any], where: object) -> dict[str, Any]:
    """The values with defaults; an InputError lists everything that is wrong with them."""
    known = f"there are {', '.join(inputs)}" if inputs else "this workflow takes none"
    problems = [f"{name}: there is no such input; {known}" for name in values if name not in inputs]
    problems += [problem for each in misfits(inputs, values).values() for problem in each]
    if problems:
        lines = "\n".join(f"  - {problem}" for problem in problems)
        raise InputError(f"{workflow} refuses its input:\n{lines}\n  defined at {where}")
    stored = stored_inputs(inputs, {name: values.get(name, each.default) for name, each in inputs.items()})
    for name, each in inputs.items():
        if each.shape.codec is not None:
            stored[name] = received(each.shape, stored[name], f"the input {name!r}")
    return stored


def stored_inputs(inputs: Mapping[str, Input], values: Mapping[str, Any]) -> dict[str, Any]:
    """Valid values as JSON data."""
    return copied_values({name: inputs[name].shape.stored(value) for name, value in values.items()})
