"""From what one stage makes to the inputs of another."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable

from ..stage import Stage
from .connections import Reading
from .units import Found, Key, Unit, key_variables


class Feeding:
    """Hands what one stage makes to one input of another."""

    def __init__(self, writer: Stage, reading: Reading, found: Found) -> None:
        self._pattern = reading.pattern
        self._found = found
        self._variables = key_variables(reading)
        alike = [
            name
            for name, output in writer.outputs.items()
            if output.kind != "members" and output.pattern.text == reading.pattern.text
        ]
        self._same = alike[0] if len(writer.outputs) == len(alike) == 1 else None
        """The output whose pattern the input has, if it is the only one: then nothing has to be matched."""
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
