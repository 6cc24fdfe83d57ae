"""The address of a class or function, `package.module:Name`, by which another process finds it again.

The module that Python was started with is called `__main__`, a name that means something else in every process. So its
things are addressed by the name under which another process can import it:

    python -m shop.orders    shop.orders:OrderWorkflow   the name it was started by
    python orders.py         orders:OrderWorkflow        importable where orders.py is: its folder, or PYTHONPATH
    python, python -c, ...   __main__:OrderWorkflow      no file: no other process can import it, and it is told so

As with `multiprocessing`, what such a module does when it is *run* belongs below `if __name__ == "__main__":`.
"""

from __future__ import annotations

import importlib
import os.path
import re
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from ..errors import DefinitionError
from ..words import message_of, short_name

_DOTTED = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_ADDRESS = re.compile(rf"{_DOTTED}:{_DOTTED}\Z")
_MAIN = ("__main__", "__mp_main__")
"""What the module that Python was started with is called; the second in processes that multiprocessing spawned."""


def is_address(text: str) -> bool:
    return _ADDRESS.match(text) is not None


def address_of(thing: type | Callable[..., Any]) -> str:
    """The address of a class or function. One defined inside a function gets one too, but nobody can import it."""
    module = thing.__module__
    return f"{_importable_name(sys.modules[module]) if module in _MAIN else module}:{thing.__qualname__}"


def _importable_name(main: ModuleType) -> str:
    """The name under which another process can import the module that this one was started with."""
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return str(spec.name)
    name, extension = os.path.splitext(os.path.basename(getattr(main, "__file__", None) or ""))
    return name if extension == ".py" and name.isidentifier() else "__main__"


def loaded(address: str) -> object:
    """What is at `address` if its module is imported already, else None. Imports nothing."""
    module_name, _, path = address.partition(":")
    found: object = _main_or(module_name, sys.modules.get(module_name))
    for part in path.split("."):
        found = getattr(found, part, None)
    return found


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
    found: Any = _main_or(module_name, None) or _imported(module_name, address)
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise DefinitionError(f"{address}: {_missing_name(module_name, part)}") from None
    return found


def _main_or(module_name: str, other: ModuleType | None) -> ModuleType | None:
    """The running main module when it is the one asked for: importing it again would make everything in it twice."""
    main = sys.modules["__main__"]
    return main if module_name == _importable_name(main) else other


def _imported(module_name: str, address: str) -> ModuleType:
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise DefinitionError(f"{address}: importing {module_name} raised {_shown(error)}") from error
        raise DefinitionError(
            f"{address}: there is no module {error.name!r} to import from here; start in the folder that holds it, "
            f"or name that folder in PYTHONPATH"
        ) from None
    except SystemExit as error:
        raise DefinitionError(
            f"{address}: importing {module_name} raised {_shown(error)}: what it does when it is run belongs below "
            f'`if __name__ == "__main__":`'
        ) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise DefinitionError(f"{address}: importing {module_name} raised {_shown(error)}") from error


def _missing_name(module_name: str, part: str) -> str:
    if module_name in _MAIN:
        return (
            f"{part!r} was defined in a session that no other process can import (a prompt, a notebook, `python -c`); "
            f"define it in a module"
        )
    return f"module {module_name!r} has no {part!r}; was it renamed or removed?"


def _shown(error: BaseException) -> str:
    return f"{short_name(type(error))}: {message_of(error)}"
