"""Which version of a file this process runs: what was changed after it was imported is not what runs."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterable
from types import ModuleType

from ..states.listing import Stamp, stamp_of

_ELSEWHERE = tuple(
    os.path.normcase(path) + os.sep
    for key in ("stdlib", "platstdlib", "purelib", "platlib")
    if (path := sysconfig.get_paths().get(key))
)
_OWN = os.path.normcase(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))) + os.sep


def is_project_file(file: str | None) -> bool:
    """Whether a file is the project's own: not of Python, of an installed package, or of Stepwell."""
    if not file or file.startswith("<frozen"):
        return False
    normal = os.path.normcase(os.path.abspath(file))
    return not normal.startswith((*_ELSEWHERE, _OWN)) and f"{os.sep}site-packages{os.sep}" not in normal


class LoadedFiles:
    """The stamps that files of the project had when their modules were first seen, which is soon after they were imported."""

    def __init__(self) -> None:
        self._modules: dict[str, object] = {}
        self._stamps: dict[str, Stamp | None] = {}

    def look(self) -> None:
        """Take in the modules that were imported or reloaded since."""
        for name, module in sys.modules.copy().items():
            loading = getattr(module, "__spec__", None) or module  # reloading a module gives it another one
            if self._modules.get(name) is not loading:
                self._modules[name] = loading
                file = getattr(module, "__file__", None)
                if isinstance(module, ModuleType) and is_project_file(file):
                    self._stamps[str(file)] = stamp_of(str(file))

    def changed(self, files: Iterable[str] | None = None) -> list[str]:
        """Those of these files, or of all, that are no longer what runs here."""
        given = self._stamps if files is None else files
        return [file for file in given if file in self._stamps and stamp_of(file) != self._stamps[file]]

    def modules(self) -> list[str]:
        """The names of the project's modules that are imported, but for the program itself."""
        return [
            name
            for name, module in sys.modules.copy().items()
            if name not in ("__main__", "__mp_main__") and is_project_file(getattr(module, "__file__", None))
        ]


loaded = LoadedFiles()
