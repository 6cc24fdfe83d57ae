"""The address of a class or function, `package.module:Name`, by which another process finds it.

What is in the main module gets the name under which another process can import that module (see `importable`), if there is one:

    python -m shop.orders    shop.orders:OrderWorkflow
    python orders.py         orders:OrderWorkflow
    python shop/orders.py    shop.orders:OrderWorkflow
    python, python -c, ...   __main__:OrderWorkflow

As with `multiprocessing`, what such a module does when it is *run* belongs below `if __name__ == "__main__":`.
"""

from __future__ import annotations

import builtins
import importlib
import inspect
import os
import re
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeGuard

from ...base.importable import MAIN, importable_name, loaded_module, module_of
from ...base.words import message_of, short_name
from ...core.graph.retry import RetryOn, predicate_problem
from ...errors import DefinitionError

_DOTTED = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_ADDRESS = re.compile(rf"{_DOTTED}:{_DOTTED}\Z")


def is_address(text: str) -> bool:
    return _ADDRESS.match(text) is not None


def address_of(thing: type | Callable[..., Any]) -> str:
    """The address of a class or function. One defined inside a function gets one too, but nobody can import it."""
    return f"{module_of(thing)}:{thing.__qualname__}"


def loaded(address: str) -> object:
    """What is at `address` if its module is imported already, else None. Imports nothing."""
    module_name, _, path = address.partition(":")
    target: object = loaded_module(module_name)
    for part in path.split("."):
        target = getattr(target, part, None)
    return target


def find(address: str) -> Any:
    """What is at `address`, its module imported if need be; a DefinitionError says why there is nothing."""
    module_name, _, path = address.partition(":")
    if "<locals>" in path:
        raise DefinitionError(
            f"{address} is defined inside a function, so only the process that defined it can use it; "
            f"move it to the top level of its module"
        )
    if not is_address(address):
        raise DefinitionError(f"{address!r} is not an address; it has the form package.module:Name")
    target: Any = _main_if(module_name) or _imported(module_name, address)
    for part in path.split("."):
        try:
            target = getattr(target, part)
        except AttributeError:
            raise DefinitionError(f"{address}: {_missing_name(module_name, part)}") from None
    return target


def find_exception(name: str, module: Callable[[str], ModuleType | None] | None = None) -> type[BaseException]:
    """The exception class of this name: `ConnectionError`, or `package.module.Name`; a DefinitionError says why there is none.

    `module` finds the modules that may be used, by name, and nothing in them is executed; by default any module is imported.
    """
    look, get = (_imported_if_there, getattr) if module is None else (module, inspect.getattr_static)
    parts = name.split(".")
    if not all(part.isidentifier() for part in parts):
        raise DefinitionError(f"{name!r}: the name of an exception has the form package.module.Name")
    places = range(len(parts) - 1, 0, -1)
    owner, left = next(
        ((home, parts[at:]) for at in places if (home := look(".".join(parts[:at]))) is not None), (builtins, parts)
    )
    target: Any = owner
    for part in left:
        target = get(target, part, None)
    if isinstance(target, type) and issubclass(target, BaseException):
        return target
    if target is not None:
        raise DefinitionError(f"{name!r}: it leads to {target!r}, which is no exception class")
    raise DefinitionError(f"{name!r}: {_no_exception(owner, left)}")


def find_retry_on(name: str) -> RetryOn:
    """What this name in `retry_on` means: an exception class, or with a colon a function that judges one."""
    return predicate_at(name, find) if ":" in name else find_exception(name)


def predicate_at(address: str, look: Callable[[str], Any]) -> Callable[[Any], bool]:
    """The function at an address, if it can decide whether to try again; `look` finds what is there."""
    predicate: Callable[[Any], bool] = look(address)
    problem = (
        predicate_problem(predicate) if callable(predicate) else f"it leads to {predicate!r}, which is no function"
    )
    if problem:
        raise DefinitionError(f"{address}: {problem}")
    return predicate


def _imported_if_there(name: str) -> ModuleType | None:
    try:
        return _main_if(name) or importlib.import_module(name)
    except (Exception, SystemExit) as error:
        if _is_missing(error, name):
            return None
        raise DefinitionError(f"{name!r}: importing it raised {_shown(error)}") from error


def _no_exception(owner: ModuleType, left: list[str]) -> str:
    if owner is not builtins:
        return f"module {owner.__name__!r} has no {left[0]!r}; if it is defined further down, give the class itself"
    if len(left) == 1:
        return f"there is no exception {left[0]!r} in Python; one of a module is named package.module.Name"
    return f"there is no module {left[0]!r} to import from here ({_folder()})"


def _main_if(module_name: str) -> ModuleType | None:
    """The main module if it is the one in question: importing it again would define everything in it twice."""
    main = sys.modules["__main__"]
    return main if module_name == importable_name(main) else None


def _imported(module_name: str, address: str) -> ModuleType:
    try:
        return importlib.import_module(module_name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if _is_missing(error, module_name):
            raise DefinitionError(
                f"{address}: there is no module {error.name!r} to import from here ({_folder()}); start in the folder that "
                f"holds it, or name that folder in PYTHONPATH"
            ) from None
        is_script = isinstance(error, SystemExit)
        advice = ': what it does when it is run belongs below `if __name__ == "__main__":`' if is_script else ""
        raise DefinitionError(f"{address}: importing {module_name} raised {_shown(error)}{advice}") from error


def _is_missing(error: BaseException, module: str) -> TypeGuard[ModuleNotFoundError]:
    """Whether this very module is not there, or a package that it is in; not one that it imports."""
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    return missing is not None and f"{module}.".startswith(f"{missing}.")


def _missing_name(module_name: str, part: str) -> str:
    if module_name in MAIN:
        return (
            f"{part!r} was defined in a session that no other process can import (a prompt, a notebook, `python -c`); "
            f"define it in a module"
        )
    return f"module {module_name!r} has no {part!r}; was it renamed or removed?"


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # somebody has deleted it
        return "a folder that is gone"


def _shown(error: BaseException) -> str:
    return f"{short_name(type(error))}: {message_of(error)}"
