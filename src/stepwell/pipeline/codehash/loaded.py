"""Which files changed after this process had imported them, so that it runs an older version."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterable
from types import ModuleType

from ..states.single import Stamp, stamp_of

_ELSEWHERE = tuple(
    os.path.normcase(path) + os.sep
    for key in ("stdlib", "platstdlib", "purelib", "platlib")
    if (path := sysconfig.get_paths().get(key))
)
_OWN = os.path.normcase(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))) + os.sep


def is_project_file(file: str | None) -> bool:
    """Whether a file belongs to the project: not to Python, an installed package or Stepwell."""
    if not file or file.startswith("<frozen"):
        return False
    normal = os.path.normcase(os.path.abspath(file))
    return not normal.startswith((*_ELSEWHERE, _OWN)) and f"{os.sep}site-packages{os.sep}" not in normal


def package_folder(file: str) -> str:
    """Return the prefix of the files in the outermost package of a file: for a module by itself, the file."""
    folder, inside = os.path.dirname(os.path.abspath(file)), os.path.abspath(file)
    if not file or os.path.normcase(inside).startswith(_OWN):
        return ""
    while os.path.exists(os.path.join(folder, "__init__.py")):
        folder, inside = os.path.dirname(folder), folder + os.sep
    return inside


class LoadedFiles:
    """The stamps of the project's files when their modules were first seen, soon after their import."""

    def __init__(self) -> None:
        self._modules: dict[str, object] = {}
        self._stamps: dict[str, Stamp | None] = {}

    def look(self) -> None:
        """Note the modules that were imported or reloaded since the last call."""
        for name, module in sys.modules.copy().items():
            loading = getattr(module, "__spec__", None) or module  # a reload makes a new one
            if self._modules.get(name) is not loading:
                self._modules[name] = loading
                file = getattr(module, "__file__", None)
                if isinstance(module, ModuleType) and is_project_file(file):
                    self._stamps[str(file)] = stamp_of(str(file))

    def changed(self, files: Iterable[str] | None = None) -> list[str]:
        """Return those of these files, or of all, that changed after their import."""
        given = self._stamps if files is None else files
        return [file for file in given if file in self._stamps and stamp_of(file) != self._stamps[file]]

    def modules(self) -> list[str]:
        """The names of the imported modules of the project, except the main program."""
        return [
            name
            for name, module in sys.modules.copy().items()
            if name not in ("__main__", "__mp_main__") and is_project_file(getattr(module, "__file__", None))
        ]


loaded = LoadedFiles()
