"""The name under which another process can import a module.

The module that Python was started with is called `__main__`, a name that means something else in every process:

    python -m shop.orders    shop.orders   the name it was started by
    python orders.py         orders        importable where orders.py is: its folder, or PYTHONPATH
    python shop/orders.py    shop.orders   importable where it was started, unless `shop` is on PYTHONPATH: then orders
    python, python -c, ...   __main__      no file: no other process can import it
"""

from __future__ import annotations

import functools
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
    return _name_of_file(getattr(main, "__file__", None) or "")


@functools.cache  # the name stays when the program changes its working directory
def _name_of_file(file: str) -> str:
    name, extension = os.path.splitext(os.path.basename(file))
    if extension != ".py" or not name.isidentifier():
        return "__main__"
    try:
        folder, here = os.path.realpath(os.path.dirname(file)), os.path.realpath(os.curdir)
    except OSError:  # somebody has deleted the working directory
        return name
    if folder in map(os.path.realpath, sys.path[1:]):  # the first is where Python itself looks, for this process alone
        return name
    below = os.path.relpath(folder, here)
    folders = [] if below == os.curdir else below.split(os.sep)
    return ".".join((*folders, name)) if all(map(str.isidentifier, folders)) else name


def loaded_module(name: str) -> ModuleType | None:
    """The module of this name if it is imported already, or is the one that Python was started with."""
    main = sys.modules["__main__"]
    return main if name == importable_name(main) else sys.modules.get(name)
