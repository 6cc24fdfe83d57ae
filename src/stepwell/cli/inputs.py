"""Imports targets, and reads and checks their input."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING
from types import ModuleType
from typing import Any, cast, get_type_hints

from ..base.place import place_of
from ..base.types.misfit import Unsupported
from ..base.types.shapes import Shape, shape_of
from ..base.words import error_text
from ..core.graph import Graph
from ..define import Builder, Target, Workflow, load_target
from ..define.types.inputs import Input, checked, inputs_of
from ..errors import DefinitionError, InputError
from .documents import Pairs, json_object, likeliest, named_values


def find_target(target: str) -> Target:
    """The class or function at `module:name`; a DefinitionError says why there is none."""
    module, separator, name = target.partition(":")
    if module.endswith(".py") or "/" in module:
        dotted = module.removesuffix(".py").strip("./").replace("/", ".")
        raise InputError(f"{target!r} is a file; a target names a module: {dotted}{separator}{name}")
    try:
        return load_target(target)
    except SystemExit as error:
        raise _ends_the_process(module) from error


def import_module(name: str) -> ModuleType:
    """Import a module; a DefinitionError says why that cannot be done."""
    try:
        return importlib.import_module(name)
    except SystemExit as error:
        raise _ends_the_process(name) from error
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise DefinitionError(f"importing {name} raised {error_text(error)}") from error
        advice = "start in the folder that holds it, or name that folder in PYTHONPATH"
        raise DefinitionError(f"there is no module {error.name!r} to import from here; {advice}") from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise DefinitionError(f"importing {name} raised {error_text(error)}") from error


def workflows_in(module: ModuleType) -> list[type[Workflow]]:
    """The workflow classes of a module that can be run: a base without a step cannot."""
    workflows = []
    for value in vars(module).values():
        if isinstance(value, type) and issubclass(value, Workflow):
            try:
                value.workflow_graph()
            except DefinitionError:
                continue
            workflows.append(value)
    return workflows


def make_startable(target: str, pairs: Pairs, file: str | None) -> Workflow | Builder:
    """What to start: an instance of a class with its input, or the Builder that a function returned."""
    target_object = find_target(target)
    inputs = inputs_of(target_object, _ignored) if isinstance(target_object, type) else _parameters(target_object)
    problems: list[str] = []
    values = json_object("--input-file", file, problems) | _typed(pairs, inputs, problems)
    instance: Workflow | None = None
    try:
        if isinstance(target_object, type):
            instance = target_object(**values)
        else:
            checked(target, inputs, values, place_of(target_object))
    except InputError as error:
        problems.append(str(error))
    if problems:
        raise InputError("\n".join(problems))
    return instance if instance is not None else _built(target, target_object, values)


def changed_input(run_id: str, workflow: Target | None, pairs: Pairs) -> dict[str, Any]:
    """What `--input` changes of the input of a run of this class; the rest of it stays."""
    if not isinstance(workflow, type):
        raise InputError(f"--input: run {run_id} is of a workflow that takes no input")
    problems: list[str] = []
    values = _typed(pairs, inputs_of(workflow, _ignored), problems)
    if problems:
        raise InputError("\n".join(problems))
    return values


def graph_of_target(target: str, pairs: Pairs) -> tuple[str, Graph]:
    """The name and the graph of a workflow. A class needs no input for it, a function that builds one may."""
    target_object = find_target(target)
    if isinstance(target_object, type):
        workflow = cast("type[Workflow]", target_object)
        return workflow.workflow_name, workflow.workflow_graph()
    built = cast("Builder", make_startable(target, pairs, None))
    return built.workflow_name, built.graph()


def _built(target: str, function: Callable[..., Any], values: Mapping[str, Any]) -> Builder:
    try:
        built = function(**values)
    except (DefinitionError, KeyboardInterrupt):
        raise
    except BaseException as error:  # also SystemExit: it is code of the user, and no end of this command
        raise DefinitionError(f"{target} raised {error_text(error)}") from error
    if not isinstance(built, Builder):
        raise DefinitionError(f"{target}: expected it to return a Builder, got {built!r}", where=place_of(function))
    return built


def _parameters(function: Callable[..., Any]) -> dict[str, Input]:
    """The parameters of a function as inputs. Without an annotation, any value is accepted."""
    try:
        hints = get_type_hints(function)
    except Exception:  # a name that only type checkers see
        hints = {}
    return {
        # Only whether there is a default matters here: the function fills it in itself.
        parameter.name: Input(
            parameter.name,
            _shape(hints.get(parameter.name, Any)),
            MISSING if parameter.default is parameter.empty else None,
        )
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is not parameter.VAR_POSITIONAL and parameter.kind is not parameter.VAR_KEYWORD
    }


def _shape(annotation: Any) -> Shape:
    """Types that JSON cannot hold (a Path, a date) are passed as the text that was typed."""
    try:
        return shape_of(annotation)
    except Unsupported:
        return shape_of(str)


def _typed(pairs: Pairs, inputs: Mapping[str, Input], problems: list[str]) -> dict[str, Any]:
    def meant(name: str, text: str) -> Any:
        return coerced(text, inputs[name].shape) if name in inputs else text

    return named_values(pairs, meant, problems)


def coerced(text: str, shape: Shape) -> Any:
    """The value that a text means for `shape`; if none fits, what will be refused with the place in it.

    >>> coerced("7", shape_of(int)), coerced("7", shape_of(str)), coerced("[7]", shape_of(list[int]))
    (7, '7', [7])
    """
    return likeliest(text, lambda value: not shape.problems(value, ""))


def _ignored(name: str, problem: str) -> None:
    """The class was checked when it was compiled."""


def _ends_the_process(module: str) -> DefinitionError:
    return DefinitionError(
        f"importing {module} ends the process; what it does when it is run as a script belongs below "
        f'`if __name__ == "__main__":`'
    )
