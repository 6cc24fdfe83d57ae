"""Which tests run a line: measured once for each file of tests, and kept until that changes or the package has a new module.

When a module has changed since, lines are found again by comparing its sources; lines that are new count as run by whoever
runs the line before. That is not exact, but good enough: who runs a line of it seldom changes, and measuring takes long.
"""

from __future__ import annotations

import ast
import difflib
import json
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .mutants import FUNCTIONS, Mutant, defined_names, header_lines
from .rooms import ROOMS, room_of
from .trees import Tree, tracked_files

Moved = dict[int, list[int]]
"""For each line of an old source the lines of the present one that it stands for."""


@dataclass
class Reach:
    """For each line the tests that run it, and for each test how long it takes."""

    sources: Mapping[str, str]
    seconds: dict[str, float] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    """Tests that fail as they are, and so say nothing."""
    _names: list[str] = field(default_factory=list)
    _tests: dict[tuple[str, int], list[int]] = field(default_factory=lambda: defaultdict(list))
    """By their places in `_names`, because there are millions."""
    _users: dict[str, set[tuple[str, int]]] = field(default_factory=dict)

    def add(self, told: dict[str, Any], moved: Callable[[str], Moved]) -> None:
        """What `measure` has found; `moved` says of a module where the lines of that time are now."""
        self.seconds |= dict(zip(told["tests"], told["seconds"], strict=True))
        self.broken += told["broken"]
        first = len(self._names)
        self._names += told["tests"]
        for module, lines in told["lines"].items():
            now = moved(module)
            for line, tests in lines.items():
                for place in now.get(int(line), ()):
                    self._tests[module, place] += [first + test for test in tests]

    def tests_for(self, mutant: Mutant) -> list[str]:
        """The tests that meet it, the fastest first."""
        if not mutant.module.endswith(".py"):
            return self._tests_of(ROOMS[room_of(mutant.module)].door)
        first, last = mutant.reached_by
        places = {(mutant.module, line) for line in range(first, last + 1)}
        if mutant.names:
            places = self._lines_that_use(mutant.names)
        return self._fastest_first({self._names[test] for place in places for test in self._tests.get(place, ())})

    def _tests_of(self, modules: Sequence[str]) -> list[str]:
        """The tests that run anything of these modules."""
        numbers = {test for (module, _), tests in self._tests.items() if module in modules for test in tests}
        return self._fastest_first({self._names[test] for test in numbers})

    def tests_near(self, mutant: Mutant) -> list[str]:
        """The tests of its room: what runs inside a profiler, as our guard does, is not measured."""
        room = ROOMS[room_of(mutant.module)]
        return self._fastest_first({test for test in self.seconds if test.startswith(room.tests)})

    def _fastest_first(self, tests: set[str]) -> list[str]:
        return sorted(tests.difference(self.broken), key=lambda test: (self.seconds[test], test))

    def _lines_that_use(self, names: Iterable[str]) -> set[tuple[str, int]]:
        """Lines in functions that use what has these names, also by way of other names at the top of a module."""
        self._users = self._users or _users(self.sources)
        places, waiting, seen = set(), list(names), set(names)
        while waiting:
            for user, line in self._users.get(waiting.pop(), ()):
                if line:
                    places.add((user, line))
                elif user not in seen:
                    seen.add(user)
                    waiting.append(user)
        return places


def _users(sources: Mapping[str, str]) -> dict[str, set[tuple[str, int]]]:
    """For each name the lines in functions that use it; (another name, 0) if that is defined with it at the top of a module."""
    users: dict[str, set[tuple[str, int]]] = defaultdict(set)

    def note(node: ast.AST, module: str, defines: tuple[str, ...], lines: tuple[int, int]) -> None:
        """`defines`: what the statement gives a name to, if it runs when the module is imported."""
        name = getattr(node, "id", None) or getattr(node, "attr", None)
        if isinstance(name, str):
            first, last = lines
            users[name].update([(each, 0) for each in defines] or [(module, line) for line in range(first, last + 1)])
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.stmt):
                later = not defines or isinstance(node, FUNCTIONS)
                note(part, module, () if later else defined_names(part) or defines, header_lines(part))
            else:
                note(part, module, defines, lines)

    for module, source in sources.items():
        if module.endswith(".py"):
            note(ast.parse(source), module, ("",), (0, 0))
    return users


def files_of_tests(below: Sequence[str] = ("tests",)) -> list[str]:
    return [name for name in tracked_files() if name.startswith(tuple(below)) and Path(name).name.startswith("test_")]


def moved_lines(old: str, new: str) -> Moved:
    found: Moved = defaultdict(list)
    matcher = difflib.SequenceMatcher(None, old.splitlines(), new.splitlines(), autojunk=False)
    for kind, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        if kind == "equal":
            for line in range(old_start, old_end):
                found[line + 1].append(line + 1 + new_start - old_start)
        else:
            for line in range(max(old_start - (kind == "insert"), 0), old_end):
                found[line + 1] += range(new_start + 1, new_end + 1)
    return found


def measure(tree: Tree, test_file: str) -> dict[str, Any]:
    """Run a file of tests in the tree: its tests, how long each took, those that fail, and for each line who runs it."""
    package = tree.root / "src" / "stepwell"
    for file in tree.notes.iterdir():
        file.unlink()
    shutil.copy(Path(__file__).with_name("tracing.py"), tree.packages)
    tree.set_up_every_python(f"import tracing; tracing.start({str(tree.notes)!r}, {str(package)!r})\n")
    try:
        tree.pytest("-p", "tests.mutation.timing", test_file, seconds=1_200)
    finally:
        tree.set_up_every_python("")
    told = tree.notes / "told.json"
    noted: dict[str, Any] = json.loads(told.read_text()) if told.exists() else {"seconds": {}, "failed": [test_file]}
    # Some tests watch time or threads so closely that measuring disturbs them.
    broken = [test for test in noted["failed"] if not tree.run_tests([test], 300).passed]
    tests = list(noted["seconds"])
    place = {test: [at] for at, test in enumerate(tests)} | {test_file: list(range(len(tests)))}
    lines: dict[str, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for file in tree.notes.glob("lines-*.json"):
        for test, modules in json.loads(file.read_text()).items():
            for module, numbers in modules.items():
                for number in numbers:
                    lines[Path(module).relative_to(package).as_posix()][number].update(place.get(test, ()))
    found = {module: {line: sorted(places) for line, places in of.items()} for module, of in lines.items()}
    return {"tests": tests, "seconds": list(noted["seconds"].values()), "broken": broken, "lines": found}
