"""Matching what one stage makes with an input of another."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable

from ..stage import Stage
from .connections import Reading
from .units import Found, Key, Unit, key_variables


class Feeding:
    """Adds what one stage makes to what one input of another has found."""

    def __init__(self, writer: Stage, reading: Reading, found: Found) -> None:
        self._pattern = reading.pattern
        self._found = found
        self._variables = key_variables(reading)
        only = next(iter(writer.outputs.values())) if len(writer.outputs) == 1 else None
        same = only is not None and only.kind != "members" and only.pattern == reading.pattern
        self._same = only.name if only is not None and same else None
        """The only output, if it has the same pattern as the input: then nothing has to be matched."""
        self._places = [writer.variables.index(name) for name in self._variables if name in writer.variables]
        self._is_key = self._variables == writer.variables

    def add(self, unit: Unit, paths_of: Callable[[Unit], list[str]]) -> None:
        if self._same is not None:
            key = unit.key if self._is_key else tuple([unit.key[place] for place in self._places])
            self._add(key, unit.outputs[self._same])
            return
        for path in paths_of(unit):
            matched = self._pattern.match(path)
            if matched is not None:
                self._add(tuple([matched[key] for key in self._variables]), path)

    def _add(self, key: Key, path: str) -> None:
        paths = self._found.get(key)
        if paths is None:
            self._found[key] = [path]
        elif path not in paths[-1:]:
            insort(paths, path)
