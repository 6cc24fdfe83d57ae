"""What changes the hash of a stage's code, and what does not."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import stepwell
from stepwell.pipeline.codehash.code import HashedCode, changed_parts
from stepwell.pipeline.codehash.follow import code_of
from stepwell.pipeline.states.single import TICK_NS

HELPERS = """
import os, re
LIMIT = 5
WORDS = re.compile("a+")
HOME = os.environ.get("HOME")
TABLE = {"a": lambda x: x + 1}

def deep(x):
    return x * LIMIT

def clean(x):
    return deep(x)

def unused(x):
    return x

class Base:
    def size(self):
        return LIMIT

class Kid(Base):
    def name(self):
        return "kid"
"""
MAIN = '''
import functools
import helpers
from helpers import Kid

def shout(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args).upper()
    return wrapper

def plain(entity, text, times=2):
    """What it does."""
    return helpers.clean(text) * times

@shout
def decorated(text):
    return text

def uses_class(text):
    return Kid().name()

def uses_table(text):
    return helpers.TABLE["a"](text)

def imports_inside(text):
    from helpers import deep
    return deep(text)

def make(prefix):
    def body(text):
        return prefix + text
    return body

closure = make("a")
partial = functools.partial(plain, times=3)
short = lambda text: text + "x"
pair = [lambda text: text + "1", lambda text: text + "2"]

class Tool:
    def __init__(self, word):
        self.word = word
    def run(self, text):
        return self.word + text
    def __call__(self, text):
        return self.run(text)

tool = Tool("w")

def blind(text):
    return getattr(helpers, text), helpers.HOME
'''


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., HashedCode]]:
    """The code of something in the project, after changes of its files."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def code(
        what: str, *, main: tuple[str, str] = ("", ""), helpers: tuple[str, str] = ("", ""), **options: Any
    ) -> HashedCode:
        for name, text, (old, new) in (("helpers", HELPERS, helpers), ("main", MAIN, main)):
            assert old in text
            (tmp_path / f"{name}.py").write_text(text.replace(old, new) if old else text + new)
        importlib.invalidate_caches()
        for name in ("helpers", "main"):
            sys.modules.pop(name, None)
        return code_of(eval(what, vars(importlib.import_module("main"))), **options)

    yield code
    for name in ("helpers", "main"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    "change",
    [
        {"main": ('"""What it does."""', '"""Other words."""')},
        {"main": ('    """What it does."""\n', "")},
        {"main": ("def plain(entity, text, times=2):", "def plain(entity, text,   times = 2):  # a comment")},
        {"helpers": ("    return deep(x)", "    # a comment\n    return (deep(\n        x\n    ))")},
        {"helpers": ("    return x\n", "    return x + 1\n")},
        {"helpers": ("", "\n\ndef another(): pass\n")},
    ],
)
def test_comments_formatting_docstrings_and_what_is_not_used_do_not_count(project: Any, change: dict[str, Any]) -> None:
    assert project("plain", **change).hash == project("plain").hash


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("plain", {"main": ("* times", "* times * 1")}),
        ("plain", {"main": ("times=2", "times=3")}),
        ("plain", {"helpers": ("x * LIMIT", "LIMIT * x")}),  # two calls away
        ("plain", {"helpers": ("LIMIT = 5", "LIMIT = 6")}),
        ("decorated", {"main": (".upper()", ".lower()")}),
        ("decorated", {"main": ("def decorated(text):\n    return text", "def decorated(text):\n    return text * 2")}),
        ("uses_class", {"helpers": ('"kid"', '"boy"')}),
        ("uses_class", {"helpers": ("def size(self):\n        return LIMIT", "def size(self):\n        return 1")}),
        ("uses_class", {"helpers": ("LIMIT = 5", "LIMIT = 6")}),  # through a base
        ("uses_table", {"helpers": ("x + 1", "x + 2")}),
        ("imports_inside", {"helpers": ("x * LIMIT", "LIMIT * x")}),
        ("closure", {"main": ('make("a")', 'make("b")')}),
        ("closure", {"main": ("prefix + text", "text + prefix")}),
        ("partial", {"main": ("times=3", "times=4")}),
        ("partial", {"helpers": ("x * LIMIT", "LIMIT * x")}),
        ("short", {"main": ('text + "x"', 'text + "y"')}),
        ("pair[1]", {"main": ('text + "2"', 'text + "3"')}),
        ("tool", {"main": ('Tool("w")', 'Tool("v")')}),
        ("tool.run", {"main": ("self.word + text", "text + self.word")}),
    ],
)
def test_what_is_used_counts_however_far_away(project: Any, what: str, change: dict[str, Any]) -> None:
    assert project(what, **change).hash != project(what).hash


def test_of_two_lambdas_in_a_line_the_right_one_counts(project: Any) -> None:
    assert project("pair[0]", main=('text + "2"', 'text + "3"')).hash == project("pair[0]").hash


def test_what_cannot_be_followed_is_listed(project: Any) -> None:
    code = project("blind")
    assert any("getattr" in what for what in code.unknown)
    assert any("helpers:HOME" in what for what in code.unknown)
    by_name = ("", "\nimport importlib\ndef by_name(text):\n    return importlib.import_module(text)\n")
    assert list(project("by_name", main=by_name).unknown) == ["main:by_name: importlib.import_module"]
    own = ("", "\ndef by_name(text):\n    return helpers.import_module(text)\n")
    assert project("by_name", main=own, helpers=("", "\ndef import_module(x):\n    return x\n")).unknown == {}
    assert project("plain").unknown == {}


def test_a_version_stands_for_the_code(project: Any) -> None:
    changed = {"main": ("* times", "+ times")}
    assert project("plain", version="1").hash == project("plain", version="1", **changed).hash
    assert project("plain", version="1").hash != project("plain", version="2").hash


def test_what_is_declared_counts(project: Any) -> None:
    before = project("plain", uses=["apsw"])
    assert before.hash != project("plain").hash
    assert "package apsw" in before.parts


def test_what_changed_is_named_with_its_place(project: Any) -> None:
    before = {name: part[0] for name, part in project("plain").parts.items()}
    now = project("plain", helpers=("x * LIMIT", "LIMIT * x"))
    (told,) = changed_parts(before, now.parts)
    assert told.startswith("helpers:deep changed (")
    assert "helpers.py:8" in told


PINNED = "25d3cdf7f6266799bc955a304d2e16f3 fe0c04c36df0a054736e1176468115c0 2dfdd73f4c47459c05907c59a4f13ba9\n"


def test_the_hash_is_the_same_in_every_process_and_python(tmp_path: Path) -> None:
    """Written down: a change of it would rebuild what everybody has."""
    (tmp_path / "helpers.py").write_text(HELPERS)
    (tmp_path / "main.py").write_text(MAIN)
    program = textwrap.dedent(
        """
        import main
        from stepwell.pipeline.codehash.follow import code_of
        print(code_of(main.plain).hash, code_of(main.uses_class).hash, code_of(main.decorated).hash)
        """
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert found == {PINNED}


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_the_hash_is_the_same_in_another_python(tmp_path: Path, version: str) -> None:
    """With each Python that is on this machine: of what it takes, only the standard library is needed."""
    python = _python_of(version)
    if python is None:
        pytest.skip(f"there is no Python {version} on this machine")
    (tmp_path / "helpers.py").write_text(HELPERS)
    (tmp_path / "main.py").write_text(MAIN)
    source = Path(stepwell.__file__).parent.parent
    program = (
        "import main\n"
        "from stepwell.pipeline.codehash.follow import code_of\n"
        "print(code_of(main.plain).hash, code_of(main.uses_class).hash, code_of(main.decorated).hash)"
    )
    ended = subprocess.run(
        [python, "-B", "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": f"{tmp_path}{os.pathsep}{source}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stdout == PINNED, ended.stderr


def _python_of(version: str) -> str | None:
    """A Python of this version that begins: a name on the path may be that of one that is not chosen here."""
    kept = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))
    for program in (shutil.which(f"python{version}"), *map(str, kept)):
        if program is not None:
            asked = [program, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
            told = subprocess.run(asked, capture_output=True, text=True, check=False)
            if told.stdout.strip() == version:
                return program
    return None


def test_a_reloaded_helper_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "reload_helper.py").write_text("def change(text):\n    return text.upper()\n")
    (tmp_path / "reload_stages.py").write_text(
        "import os\nimport reload_helper\nfrom stepwell import Pipeline\n"
        "p = Pipeline('p', root=os.environ['RELOAD_ROOT'])\n"
        "@p.stage(input='in/{x}', output='out/{x}')\n"
        "def stage(text: str):\n    return reload_helper.change(text)\n"
    )
    monkeypatch.setenv("RELOAD_ROOT", str(tmp_path / "root"))
    (tmp_path / "root/in").mkdir(parents=True)
    (tmp_path / "root/in/a").write_text("Text")
    pipeline = importlib.import_module("reload_stages").p
    engine = f"sqlite:///{tmp_path}/engine.db"
    assert pipeline.build(engine=engine).produced == ("stage a",)
    (tmp_path / "reload_helper.py").write_text("def change(text):\n    return text.lower() + '!'\n")
    assert pipeline.build(engine=engine).produced == ()  # what runs is still what was imported
    importlib.reload(sys.modules["reload_helper"])
    assert [cause.code for cause in pipeline.why("out/a").standing.causes] == ["code_changed"]
    assert pipeline.build(engine=engine).produced == ("stage a",)
    assert (tmp_path / "root/out/a").read_text() == "text!"
    for name in ("reload_helper", "reload_stages"):
        del sys.modules[name]


def test_an_edit_that_is_not_yet_loaded_is_noticed_by_the_next_process(tmp_path: Path) -> None:
    """A process that goes on with the old code must not tell others that the new file has its hash."""
    (tmp_path / "edited.py").write_text(
        "from pathlib import Path\nfrom stepwell import Pipeline\n"
        "p = Pipeline('p', root='root')\n"
        "@p.stage(input='in/{x}', output='out/{x}')\n"
        "def stage(text: str):\n    return text.upper()\n"
    )
    (tmp_path / "root/in").mkdir(parents=True)
    (tmp_path / "root/in/a").write_text("Text")
    first = (
        "from edited import p\nfrom pathlib import Path\np.build()\n"
        "Path('edited.py').write_text(Path('edited.py').read_text().replace('upper', 'lower'))\n"
        "Path('root/in/b').write_text('More')\nprint(p.build().produced)"
    )
    told = []
    for program in (first, "import time; time.sleep(0.3)\nfrom edited import p; print(sorted(p.build().produced))"):
        ended = subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        told.append(ended.stdout.strip())
    assert told == ["('stage b',)", "['stage a', 'stage b']"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("bodies.first", "bodies.second"),  # other functions with the same decorator, whose wrappers have one place
        ("bodies.make(bodies.first)", "bodies.make(bodies.second)"),
        ("bodies.first", 'bodies.first, version="2"'),
    ],
)
def test_the_cached_hash_of_a_stage_is_that_of_its_present_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, after: str
) -> None:
    """The cache knows the files of a stage's code, but the file that puts function and stage together is none of them."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "bodies.py").write_text(
        "import functools\n"
        "def shout(function):\n    @functools.wraps(function)\n    def wrapper(text: str):\n        return function(text)\n"
        "    return wrapper\n"
        "@shout\ndef first(text: str):\n    return text + '1'\n"
        "@shout\ndef second(text: str):\n    return text + '2'\n"
        "def make(function):\n    def body(text: str):\n        return function(text)\n    return body\n"
    )
    time.sleep(1.5 * TICK_NS / 1e9)  # the stamp of a file that was just written says nothing
    pipelines = []
    for name, what in (("before", before), ("after", after)):
        function, _, options = what.partition(", ")
        (tmp_path / f"{name}.py").write_text(
            f"import bodies\nfrom stepwell import Pipeline\np = Pipeline('p', root={str(tmp_path / 'root')!r})\n"
            f"p.stage('s', input='in/{{x}}', output='out/{{x}}', {options})({function})\n"
        )
        importlib.invalidate_caches()
        pipelines.append(importlib.import_module(name).p)
        del sys.modules[name]
    (tmp_path / "root/in").mkdir(parents=True)
    (tmp_path / "root/in/a").write_text("a")
    engine = f"sqlite:///{tmp_path}/engine.db"
    assert [pipelines[0].build(engine=engine).produced for _ in range(2)] == [("s a",), ()]
    assert pipelines[1].build(engine=engine).produced == ("s a",)
    del sys.modules["bodies"]
