"""The name under which another process can import a module.

The module that Python was started with is called `__main__`, a name that means something else in every process:

    python -m shop.orders    shop.orders   the name it was started by
    python orders.py         orders        importable where orders.py is: its folder, or PYTHONPATH
    python, python -c, ...   __main__      no file: no other process can import it
"""

from __future__ import annotations

import os.path
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

MAIN = ("__main__", "__mp_main__")
"""What the module that Python was started with is called; the second in processes that multiprocessing spawned."""


def module_of(thing: type | Callable[..., Any]) -> str:
    """The name of the module that a class or function was defined in."""
    module = thing.__module__
    return importable_name(sys.modules[module]) if module in MAIN else module


def exception_name(kind: type[BaseException]) -> str:
    """`package.module.Name` of an exception class: the same whether its module was started or imported."""
    return f"{module_of(kind)}.{kind.__qualname__}"


def importable_name(main: ModuleType) -> str:
    """The name under which another process can import the module that this one was started with."""
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return str(spec.name)
    name, extension = os.path.splitext(os.path.basename(getattr(main, "__file__", None) or ""))
    return name if extension == ".py" and name.isidentifier() else "__main__"


def loaded_module(name: str) -> ModuleType | None:
    """The module of this name if it is imported already, or is the one that Python was started with."""
    main = sys.modules["__main__"]
    return main if name == importable_name(main) else sys.modules.get(name)
