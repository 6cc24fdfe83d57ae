"""What `make mutate` plants, and what it leaves alone."""

from __future__ import annotations

import textwrap

import pytest

from tests.mutation.__main__ import DOORS, choose
from tests.mutation.mutants import make_mutants, mutants_of
from tests.mutation.rooms import ROOMS, is_in, room_of, rooms_below
from tests.mutation.trees import PACKAGE, read_sources, tracked_files


def changes(source: str) -> list[str]:
    """The lines as they are changed, in one line each."""
    text = textwrap.dedent(source)
    found = list(mutants_of("m.py", text))
    assert all(mutant.compiles(text) for mutant in found)
    return [mutant.now.replace("\n", " ⏎ ") for mutant in found]


@pytest.mark.parametrize(
    ("line", "mutants"),
    [
        ("a = b < c", ["a = b <= c"]),
        ("a = b is not c", ["a = b is c"]),
        ("a = b < c <= d", ["a = b <= c <= d", "a = b < c < d"]),
        ("a = b and c", ["a = b or c", "a = True and c", "a = b and True"]),
        ("a = (b) or (c or d)", ["a = (b) and (c or d)", "a = (b) or (c and d)"]),
        ("a = not b", ["a = (b)"]),
        ("a = b + 1", ["a = b - 1", "a = b + 2", "a = b + 0"]),
        ("a += b", ["pass", "a -= b"]),
        ("a = b[c:]", ["a = b[(c) + 1:]"]),
        ("a = True", ["a = False"]),
        ("a = 10_000", []),
        ("a = min(b)", ["a = max(b)"]),
        ("a = b.all()", []),
        ("a = 'é', b < c", ["a = 'é', b <= c"]),
        ("a = [b for b in c if b.d]", ["a = [b for b in c if True]"]),
        ("a = b if c else d", ["a = b if False else d", "a = b if True else d"]),
        ("a.b = c", ["pass"]),
        ("a.b()", ["pass"]),
        ("os.kill(a, 0)", ["pass"]),
    ],
)
def test_what_is_planted(line: str, mutants: list[str]) -> None:
    assert changes(line) == mutants


def test_conditions_are_forced_and_statements_are_removed() -> None:
    source = """
    def f(a: int | None, b: int = 1) -> int:
        '''Not < this.'''
        if a:
            raise ValueError(f"{a} < 1")
        while b:
            break
        return a
    """
    assert changes(source) == [
        "def f(a: int | None, b: int = 2) -> int:",
        "def f(a: int | None, b: int = 0) -> int:",
        "if False:",
        "if True:",
        "pass",
        "while False:",
        "pass",
        "return None",
    ]


def test_what_nobody_could_notice_is_left_alone() -> None:
    source = """
    __all__ = ["a"]
    @decorator(frozen=True)
    class A:
        __slots__ = ("a",)
        a: Literal[1]
        def __init__(self) -> None:
            self.a = b
        def __repr__(self) -> str:
            return f"{self.a < 1}"
        def f(self) -> None:
            assert self.a < 1
            log.warning("%d", 1 < 2)
    """
    assert changes(source) == []


@pytest.mark.parametrize(
    ("statement", "mutants"),
    [
        ("SELECT a FROM b WHERE c < {d}", ["SELECT a FROM b WHERE c <= {d}"]),
        ("UPDATE a SET b = b + 1", ["UPDATE a SET b = b - 1", "UPDATE a SET b = b + 2"]),
        (
            "DELETE FROM a WHERE b IS NULL AND (c) > d ORDER BY e DESC",
            [
                "DELETE FROM a WHERE b IS NOT NULL AND (c) > d ORDER BY e DESC",
                "DELETE FROM a WHERE b IS NULL  ORDER BY e DESC",
                "DELETE FROM a WHERE b IS NULL OR (c) > d ORDER BY e DESC",
                "DELETE FROM a WHERE b IS NULL AND (c) >= d ORDER BY e DESC",
                "DELETE FROM a WHERE b IS NULL AND (c) > d ORDER BY e ASC",
            ],
        ),
        ("SELECT a ->> '$[1]' FROM b WHERE c BETWEEN ? AND ?", []),
    ],
)
def test_statements_for_the_database_are_changed_too(statement: str, mutants: list[str]) -> None:
    assert changes(f'a = f"""{statement}"""') == [f'a = f"""{each}"""' for each in mutants]


def test_a_mutant_is_known_again_when_lines_move() -> None:
    source = "def f():\n    return a < b\n\n\ndef g():\n    return a < b\n"
    first, second = list(mutants_of("m.py", source)), list(mutants_of("m.py", "import os\n\n\n" + source))
    assert [each.id for each in first] == [each.id for each in second]
    assert len({each.id for each in first}) == len(first)
    assert [each.line + 3 for each in first] == [each.line for each in second]


def test_a_sample_is_drawn_by_its_seed() -> None:
    sources = read_sources()
    mutants = list(make_mutants(sources, ["core/kernel/plans.py", "core/graph"]))
    assert {each.module.rpartition("/")[0] for each in mutants} == {"core/kernel", "core/graph"}
    first = choose(mutants, sources, 1, 10)
    assert first == choose(mutants, sources, 1, 20)[:10]
    assert first != choose(mutants, sources, 2, 10)


def test_every_module_is_in_a_room_and_every_room_has_code_and_tests() -> None:
    sources, tests = read_sources(), tracked_files()
    assert {room_of(module) for module in sources} == {*ROOMS}
    for name, room in ROOMS.items():
        assert all(any(is_in(module, (path,)) for module in sources) for path in (name, *room.also)), name
        assert [path for path in room.tests if not any(file.startswith(path) for file in tests)] == []
        assert all(door in sources for door in room.door)


def test_a_door_of_the_package_stands_for_all_rooms_behind_it() -> None:
    doors = [path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()]
    assert sorted(doors) == sorted(DOORS)
    assert rooms_below("stores") == ["stores", "stores/sqlite", "stores/postgres", "stores/redis"]
    assert rooms_below("base/types") == ["base/types"]
    assert room_of("base/types/forms.py") == "base/types"
    assert room_of("base/codec.py") == "base"
    assert room_of("errors.py") == "base"


@pytest.mark.parametrize(
    ("line", "mutants"),
    [
        ("  if a < 1 then -- not < this", ["if a <= 1 then", "if a < 2 then", "if false then", "if true then"]),
        ("  finish(row, 'a < b')", [""]),
        ("  local a = b and not c", ["local a = b or not c", "local a = b and  c"]),
    ],
)
def test_lua_is_changed_by_its_tokens(line: str, mutants: list[str]) -> None:
    found = [mutant.now for mutant in mutants_of("m.lua", f"function f(a)\n{line}\nend\n")]
    assert [now.removesuffix(" -- not < this") for now in found] == mutants


def test_functions_of_sql_are_changed_and_tables_are_not() -> None:
    source = "CREATE TABLE a (b int CHECK (b > 0));\nCREATE FUNCTION f_1() AS $$ SELECT a FROM b WHERE c < d $$;\n"
    assert [mutant.function for mutant in mutants_of("m.sql", source)] == ["f_1"]
