"""Code counts in whatever form Python holds it: every word of the project that a stage uses changes its hash."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stepwell import DefinitionError, Pipeline
from stepwell.pipeline.codehash.code import HashedCode
from stepwell.pipeline.codehash.follow import code_of

LIBRARY = """
import functools

def bare(function):
    def wrapper(*args):
        return function(*args)
    return wrapper

def wrapping(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)
    return wrapper

def with_default(function):
    def wrapper(*args, function=function):
        return function(*args)
    return wrapper

def repeated(times, when=None):
    return lambda function: Task(function, {"times": times, "when": when})

def constant(times):
    def body(text):
        return text * times
    return body

class Task:
    def __init__(self, function, options=()):
        self.inner = Inner(function)
        self.options = options
    def __call__(self, *args):
        return self.inner.function(*args)

class Inner:
    __slots__ = ("function",)
    def __init__(self, function):
        self.function = function

TASKS = {}

def task(function):
    TASKS[function.__name__] = function
    return caller(function.__name__)

def caller(name):
    return lambda *args: TASKS[name](*args)

def named(function):
    TASKS[function.__name__] = function
    return function.__name__

class Named:
    def __init__(self, function):
        TASKS[function.__name__] = function
        self.name = function.__name__
    def __call__(self, *args):
        return TASKS[self.name](*args)

class Method:
    def __init__(self, function):
        self.function = function
    def __get__(self, instance, owner):
        return lambda *args: self.function(instance, *args)
"""
BEGIN = """
import abc, contextlib, dataclasses, enum, functools, typing
import library
def deep(text): return text + "mark1"
"""
CASES = {
    "two of one decorator": """
        def shout(function):
            def wrapper(text): return function(text) + "mark2"
            return wrapper
        @shout
        def first(text): return text + "mark3"
        @shout
        def second(text): return text + "mark4"
        def stage(text): return first(second(deep(text)))""",
    "three wrappers of one decorator": """
        def shout(function):
            @functools.wraps(function)
            def wrapper(text): return function(text) + "mark2"
            return wrapper
        @shout
        @shout
        def first(text): return text + "mark3"
        @shout
        def stage(text): return first(deep(text)) + "mark4" """,
    "a decorator with arguments": """
        def adding(word):
            def decorate(function):
                def wrapper(text): return function(text) + word
                return wrapper
            return decorate
        WORD = "mark2"
        @adding(WORD)
        def first(text): return text
        @adding("mark3")
        def second(text): return text
        def stage(text): return first(second(deep(text)))""",
    "a library's wrapper": """
        @library.bare
        def stage(text): return deep(text) + "mark2" """,
    "a library's wrapper with wraps": """
        @library.wrapping
        def stage(text): return deep(text) + "mark2" """,
    "a library's wrapper in a default": """
        @library.with_default
        def stage(text): return deep(text) + "mark2" """,
    "a library's object": """
        @library.repeated(3, "mark2")
        def stage(text): return deep(text) + "mark3" """,
    "a library's object with a function as argument": """
        def fails(text): return "mark2" in text
        first = library.repeated(3, fails)(deep)
        def stage(text): return first(text) + "mark3" """,
    "what a library wraps, used by another": """
        @contextlib.contextmanager
        def opened(text): yield text + "mark2"
        @library.bare
        def other(text): return deep(text) + "mark3"
        def stage(text):
            with opened(other(text)) as found: return found""",
    "what a library registers": """
        @library.task
        def first(text): return deep(text) + "mark2"
        @library.named
        def second(text): return text + "mark3"
        @library.Named
        async def third(text): return text + "mark4"
        @library.named
        class Fourth:
            word = "mark5"
        def stage(text): return third(first(library.TASKS[second](text))) + library.TASKS[Fourth].word""",
    "contextmanager": """
        @contextlib.contextmanager
        def stage(text): yield deep(text) + "mark2" """,
    "singledispatch": """
        @functools.singledispatch
        def stage(text): return "mark2"
        @stage.register
        def _(text: str): return deep(text) + "mark3"
        @stage.register(int)
        def _(text): return "mark4" """,
    "singledispatchmethod": """
        class Tool:
            @functools.singledispatchmethod
            def run(self, text): return "mark2"
            @run.register
            def _(self, text: str): return deep(text) + "mark3"
        tool = Tool()
        def stage(text): return tool.run(text)""",
    "cache": """
        @functools.lru_cache(maxsize=2)
        def first(text): return deep(text) + "mark2"
        @functools.cache
        def stage(text): return first(text) + "mark3" """,
    "partial": """
        def both(text, other, word): return deep(text) + other(word) + "mark2"
        def second(text): return text + "mark3"
        stage = functools.partial(both, other=second, word="mark4")""",
    "two partials of a closure": """
        def join(first, second, text): return second(first(text))
        def add(text, word): return deep(text) + word
        def make(first, second): return lambda text: join(first, second, text)
        stage = make(functools.partial(add, word="mark2"), functools.partial(add, word="mark3"))""",
    "partialmethod": """
        class Tool:
            def add(self, word, text): return deep(text) + word + "mark2"
            run = functools.partialmethod(add, "mark3")
        def stage(text): return Tool().run(text)""",
    "a bound method": """
        class Base:
            def size(self): return "mark2"
        class Tool(Base):
            def __init__(self, word): self.word = word
            def run(self, text): return deep(text) + self.word + self.other()
            def other(self): return self.size() + "mark3"
        stage = Tool("mark4").run""",
    "a bound method of a class": """
        class Tool:
            @classmethod
            def run(cls, text): return deep(text) + cls.other()
            @classmethod
            def other(cls): return "mark2"
        stage = Tool.run""",
    "a static method": """
        class Tool:
            @staticmethod
            def run(text): return deep(text) + "mark2"
        stage = Tool.run""",
    "two objects of one class": """
        class Adding:
            def __init__(self, word): self.word = word
            def __call__(self, text): return deep(text) + self.word + "mark2"
        def both(first, second): return lambda text: first(second(text))
        stage = both(Adding("mark3"), Adding("mark4"))""",
    "an object with slots that holds functions": """
        class Tool:
            __slots__ = ("steps", "word")
            def __init__(self, word, *steps): self.steps, self.word = steps, word
            def __call__(self, text):
                for step in self.steps: text = step(text)
                return text + self.word
        stage = Tool("mark2", deep, lambda text: text + "mark3")""",
    "a class as decorator": """
        class Counting:
            def __init__(self, function):
                functools.update_wrapper(self, function)
                self.function = function
            def __call__(self, text): return self.function(text) + "mark2"
        def body(text): return deep(text) + "mark3"
        stage = Counting(body)""",
    "lambdas": """
        first, second = (lambda text: text + "mark2"), lambda text: text + "mark3"
        stage = lambda text: first(second(deep(text)))""",
    "a lambda with a default": """
        def second(text): return text + "mark2"
        def make(function, word):
            return lambda text, function=function, word=word: function(deep(text)) + word
        stage = make(second, "mark3")""",
    "a default that is a function": """
        def stage(text, *, step=deep, word="mark2"): return step(text) + word""",
    "nested closures": """
        def outer(one):
            def middle(two):
                def inner(text): return deep(text) + one("mark2") + two
                return inner
            return middle
        def second(text): return text + "mark3"
        stage = outer(second)("mark4")""",
    "a dict of functions": """
        def second(text): return text + "mark2"
        STEPS = {"a": deep, "b": second, "c": lambda text: text + "mark3"}
        def stage(text): return STEPS["a"](text)""",
    "a registry": """
        STEPS = {}
        def register(name):
            def add(function):
                STEPS[name] = [function]
                return function
            return add
        @register("a")
        def first(text): return deep(text) + "mark2"
        @register("b")
        def second(text): return text + "mark3"
        def stage(text): return STEPS["b"][0](text)""",
    "functions in a list in a closure": """
        def make(*steps):
            kept = {"steps": list(steps)}
            def body(text):
                for step in kept["steps"]: text = step(text)
                return text
            return body
        stage = make(deep, lambda text: text + "mark2", str.upper)""",
    "a property": """
        class Tool:
            @property
            def word(self): return "mark2"
            @word.setter
            def word(self, value): self.value = value + "mark3"
            @functools.cached_property
            def other(self): return deep("mark4")
        def stage(text): return Tool().word + text""",
    "a property of a class in a function": """
        def make(word):
            class Tool:
                @property
                def word(self): return word
                def run(self, text): return deep(text) + self.word + "mark2"
            return Tool
        Tool = make("mark3")
        def stage(text): return Tool().run(text)""",
    "a descriptor of the project": """
        class Field:
            def __get__(self, instance, owner): return "mark2"
        class Tool:
            word = Field()
        def stage(text): return deep(text) + Tool().word""",
    "a descriptor of a library": """
        class Tool:
            @library.Method
            def run(self, text): return deep(text) + "mark2"
        def stage(text): return Tool().run(text)""",
    "a decorator of classes": """
        def extended(kind):
            class Extended(kind):
                def run(self, text): return super().run(text) + "mark2"
            return Extended
        @extended
        class Tool:
            def run(self, text): return deep(text) + "mark3"
        def stage(text): return Tool().run(text)""",
    "a method put into a class": """
        def run(self, text): return deep(text) + "mark2"
        class Tool: pass
        def finish(kind, **members):
            for name, each in members.items(): setattr(kind, name, each)
        finish(Tool, run=run)
        def stage(text): return Tool().run(text)""",
    "a metaclass": """
        class Meta(type):
            def run(cls, text): return deep(text) + "mark2"
        class Tool(metaclass=Meta): pass
        def stage(text): return Tool.run(text)""",
    "a dataclass with a default": """
        @dataclasses.dataclass(frozen=True)
        class Tool:
            word: str = "mark2"
            step: typing.Callable = dataclasses.field(default_factory=lambda: deep)
        def stage(text): return Tool().word + text""",
    "an enumeration and a named tuple": """
        class Kind(enum.Enum):
            FIRST = "mark2"
            def run(self, text): return deep(text) + self.value
        Pair = typing.NamedTuple("Pair", [("mark3", str)])
        def stage(text): return Pair(Kind.FIRST.run(text))""",
    "a function replaced under its own name": """
        def first(text): return deep(text) + "mark2"
        first = library.repeated(1, "mark3")(first)
        def stage(text): return first(text)""",
    "source that Python was given as text": """
        space = {"deep": deep}
        exec("def stage(text):\\n    return deep(text) + (lambda each: each + 'mark2')('mark3')", space)
        stage = space["stage"]""",
    "a coroutine and a generator": """
        async def first(text): return text + "mark2"
        def many(text): yield deep(text) + "mark3"
        async def stage(text): return await first(next(many(text)))""",
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], HashedCode]]:
    """The code of `stage` in a project that uses an installed library."""
    installed = tmp_path / "site-packages"
    installed.mkdir()
    (installed / "library.py").write_text(LIBRARY)
    monkeypatch.syspath_prepend(str(installed))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def code(source: str) -> HashedCode:
        (tmp_path / "objects.py").write_text(source)
        importlib.invalidate_caches()
        sys.modules.pop("objects", None)
        return code_of(importlib.import_module("objects").stage)

    yield code
    for name in ("objects", "library"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("case", CASES)
def test_every_word_of_the_project_counts(project: Callable[[str], HashedCode], case: str) -> None:
    source = BEGIN + "\n".join(line.removeprefix("        ") for line in CASES[case].split("\n")) + "\n"
    before = project(source).hash
    assert project(f"# A comment, and lines.\n\n\n{source}\ndef unused(): pass\n").hash == before
    marks = sorted(set(re.findall(r"mark\d", source)))
    unnoticed = [mark for mark in marks if project(source.replace(mark, mark.replace("mark", "word"))).hash == before]
    assert (unnoticed, len(marks) > 1 or "deep" in case or "default" in case) == ([], True)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from json import loads as read", "from tomllib import loads as read"),
        ("import json as reader", "import pickle as reader"),
        ("from library import Task as Made", "from library import Inner as Made"),
    ],
)
def test_another_library_under_the_same_name_counts(
    project: Callable[[str], HashedCode], before: str, after: str
) -> None:
    name = before.rpartition(" ")[2]
    source = f"{before}\ndef stage(text): return {name}.loads(text) if text else {name}(text)\n"
    assert project(source).hash != project(source.replace(before, after)).hash


@pytest.mark.parametrize(
    "what",
    ["library.constant(3)", "library.Task(len)", "library.bare(len)", "functools.partial(library.constant(3), 1)"],
)
def test_a_stage_without_code_is_refused_where_it_is_written(
    project: Callable[[str], HashedCode], what: str, tmp_path: Path
) -> None:
    project(f"{BEGIN}\ndef stage(text): pass\nmade = {what}\n")
    pipeline = Pipeline("p", root=tmp_path / "root")
    body = sys.modules["objects"].made
    options: dict[str, Any] = {"name": "s", "input": "in/{x}", "output": "out/{x}"}
    with pytest.raises(DefinitionError, match=r"stage 's': the code of .* was not found") as refused:
        pipeline.stage(**options)(body)
    assert "test_code_in_objects.py" in str(refused.value)
    pipeline.stage(**options, version="1")(body)


def test_a_project_that_is_installed_counts_where_its_stages_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site-packages/shop"
    package.mkdir(parents=True)
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (package / "__init__.py").write_text("")
    (package / "stages.py").write_text(
        "from stepwell import Pipeline\nfrom shop.text import clean\np = Pipeline('p')\n"
        "@p.stage(input='in/{x}', output='out/{x}')\ndef s(text: str): return clean(text)\n"
    )
    hashes = []
    for word in ("a", "b"):
        (package / "text.py").write_text(f"def clean(text): return text + {word!r}\n")
        importlib.invalidate_caches()
        for name in ("shop", "shop.text", "shop.stages"):
            sys.modules.pop(name, None)
        hashes.append(importlib.import_module("shop.stages").p.code.of("s").hash)
    for name in ("shop", "shop.text", "shop.stages"):
        sys.modules.pop(name, None)
    assert hashes[0] != hashes[1]


def test_a_class_that_a_library_holds_is_followed_to_the_end(project: Callable[[str], HashedCode]) -> None:
    source = f"""{BEGIN}
@library.repeated(3)
class Tool:
    def run(self, text): return deep(text)
def stage(text): return Tool(text)
"""
    code = project(source)
    assert code.unknown == {}
    assert "objects:Tool#2" in code.parts
    assert not [name for name in code.parts if name.endswith(" decorated")], "`why` names it once"


@pytest.mark.parametrize("value", ["io.StringIO()", "Tool()"])
def test_a_value_that_is_neither_code_nor_data_is_named(project: Callable[[str], HashedCode], value: str) -> None:
    """Nobody can tell whether it changed."""
    source = f"""import io
class Tool:
    word = "mark1"
def make():
    held = {value}
    def stage(text): return held, text
    return stage
stage = make()
"""
    code = project(source)
    assert list(code.unknown.values()) == [f"a value of type {value.rpartition('.')[2].removesuffix('()')}"]
    assert (project(source.replace("mark1", "word1")).hash != code.hash) == (value == "Tool()"), "but its class counts"
