"""Every option of every command does something, and every option that a message names is one of the command it is said of."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer

from stepwell.cli import streams
from stepwell.cli.app import app
from stepwell.cli.exits import ExitCode, code_for
from stepwell.errors import InputError

SOURCE = Path(streams.__file__).parents[1]
ROOT: Any = typer.main.get_command(app)


class Command(NamedTuple):
    path: str
    click: Any

    @property
    def options(self) -> set[str]:
        return {name for each in self.click.params for name in each.opts if name.startswith("--")}


def commands(group: Any = ROOT, path: tuple[str, ...] = ()) -> Iterator[Command]:
    for name, each in group.commands.items():
        if hasattr(each, "commands"):
            yield from commands(each, (*path, name))
        else:
            yield Command(" ".join((*path, name)), each)


ALL = {each.path: each for each in commands()}
OF_ALL = {"--help", *(name for each in ROOT.params for name in each.opts)}
"""Options before a command."""

DOCUMENT = '{"name": "d", "nodes": [{"id": "a", "handler": "transform", "config": {"template": 1}}]}'
ARGUMENTS = {
    "run": ["d.json"],
    "show": ["r-none"],
    "why": ["r-none"],
    "logs": ["r-none"],
    "audit": ["r-none"],
    "attempts": ["r-none"],
    "failures": ["r-none"],
    "checkpoints": ["r-none"],
    "replay": ["r-none"],
    "export": ["r-none", "x.json"],
    "graph": ["r-none"],
    "retry": ["r-none"],
    "reattempt": ["r-none", "a"],
    "fork": ["r-none"],
    "diff": ["r-none", "r-other"],
    "pause": ["r-none"],
    "resume": ["r-none"],
    "freeze": ["r-none"],
    "import": ["r-none", "d.json"],
    "cancel": ["r-none"],
    "render": ["stored", "a"],
    "try": ["stored", "a"],
    "save": ["d.json"],
    "activate": ["d"],
    "workflow": ["d"],
    "token revoke": ["t"],
    "trigger show": ["t"],
    "trigger add": ["t", "d", "--every", "1h"],
    "trigger pause": ["t"],
    "trigger resume": ["t"],
    "trigger fire": ["t"],
    "trigger backfill": ["t", "2026-03-01", "2026-03-02"],
    "trigger rm": ["t"],
    "pipeline why": ["x"],
    "pipeline invalidate": ["x"],
    "pipeline accept": ["x"],
    "pipeline put": ["a", "d.json"],
}
NAMED = {path: ["-p", "stored"] for path in ALL if path.startswith("pipeline ")}
"""A pipeline is looked up in the store if it is neither a file nor a module."""
PLACES = {"--store": "sqlite:///no-such-folder/deeper/x.db", "--server": "http://127.0.0.1:1"}
ELSEWHERE = {"worker": "its processes open the store, again and again until it is there: tests/celery"}


@pytest.mark.parametrize("option", PLACES)
@pytest.mark.parametrize("path", [path for path in ALL if path not in ELSEWHERE])
def test_a_store_or_server_that_is_named_is_used(
    path: str, option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """One that is not there is an error of every command that takes it; no other command takes it."""
    if option not in ALL[path].options:
        return
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(streams, "reserve_stdout", lambda: None)
    monkeypatch.setattr(sys, "path", [*sys.path])  # to which a command adds the folder
    Path("d.json").write_text(DOCUMENT)
    words = [*path.split(), *ARGUMENTS.get(path, ()), *NAMED.get(path, ()), option, PLACES[option]]
    try:
        code = app(words, standalone_mode=False) or 0
        said = capfd.readouterr().err
    except Exception as error:
        code, said = code_for(error), str(error)
    assert code in (ExitCode.STORE, ExitCode.USAGE), said
    assert "no-such-folder" in said or "127.0.0.1:1" in said, said


def test_a_place_that_is_named_before_a_command_that_needs_none_is_refused() -> None:
    for path in (path for path in ALL if "--store" not in ALL[path].options and path != "version"):
        arguments = ["x"] * sum(each.required for each in ALL[path].click.params)
        with pytest.raises(InputError, match=f"{path} needs no store and no server: leave out --store"):
            app(["--store", "memory://", *path.split(), *arguments], standalone_mode=False)


@pytest.mark.parametrize("path", [path for path in ALL if path != "version"])
def test_a_command_reads_every_option_that_it_has(path: str) -> None:
    """The function that carries a command out names each of its parameters again, or hands on what it does not name."""
    home, function = implementation(path)
    read = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    arguments = function.args
    parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    parameters += [each for each in (arguments.kwarg,) if each is not None]
    unread = {each.arg for each in parameters} - read - {"connection", "place"}
    assert not unread, f"{home}.{function.name} does nothing with {unread}"


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(inspect.getsource(importlib.import_module(module)))


def implementation(path: str) -> tuple[str, ast.FunctionDef]:
    """The module and the function that do what a command is for."""
    callback = ALL[path].click.callback
    free = inspect.getclosurevars(inspect.unwrap(callback)).nonlocals
    while "home" not in free:
        free = inspect.getclosurevars(next(each for each in free.values() if callable(each))).nonlocals
    module = f"stepwell.cli.commands.{free['home']}"
    (found,) = [
        each
        for each in tree(module).body
        if isinstance(each, ast.FunctionDef) and each.name == free["declared"].__name__
    ]
    return module, found


# What messages say

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
TYPED = re.compile(r"(?:^|stepwell )((?:(?:pipeline|trigger|token) )?[a-z]+)\b([^`\n]*)")
"""A command with what follows it, in a sentence or as a text of its own."""
RUNS_CODE = {"run", "retry", "reattempt", "fork", "resume", "work", "worker", "serve", "dev", "try", "import", "replay"}
RUNS_CODE |= {
    "checkpoints",
    "export",
    "check",
    "save",
    "trigger fire",
    *(path for path in ALL if path.startswith("pipeline ")),
}
"""Commands in which code is found by the names that a run, a document or a pipeline has for it."""
SAID_OF: dict[str, dict[str, set[str]]] = {
    "define/code/registry.py": {"--jobs": RUNS_CODE},
    "core/kernel/healing.py": {"--accept": {"retry", "resume"}},
    "core/kernel/plans.py": {"--cascade": {"reattempt"}},
    "engine/broker_app.py": {"--pool": {"worker"}},
    "history/why/pauses.py": {"--input": {"retry", "resume"}, "--accept": {"retry", "resume"}},
    "engine/show/next_steps.py": {"--accept": {"retry", "resume"}},
    "engine/code/versions.py": {"--input": {"retry", "resume"}},
    "engine/procedures/copy_runs.py": {"--trust": {"copy"}, "--unfinished": {"copy"}},
    "engine/reports/cassettes.py": {"--missing-code-ok": {"export"}},
    "engine/show/run.py": {"--all": {"show"}},
    "engine/trying.py": {"--outputs": {"render", "try"}},
    "pipeline/building/work.py": {"--force": {"pipeline build"}},
    "server/access/guard.py": {"--allow-host": {"serve"}},
    "server/api/pipelines.py": {"--pipeline": {"serve"}},
    "server/serving.py": {"--host": {"serve"}, "--port": {"serve", "dev"}, "--root-path": {"serve"}},
    "cli/connect.py": {"--jobs": RUNS_CODE, "--store": {"run", "work"}, "--server": {"run"}},
    "cli/show/node.py": {"--json": {"show"}},
    "cli/show/pipeline.py": {"--json": {"pipeline status", "pipeline why", "pipeline build"}},
}
"""Of which commands a text says that they have an option, where it does not name the command."""
NOT_OURS = {"base/commands.py", "handlers/shell.py"}
"""`commands.py` adds the options of the whole command line; the example of a handler calls a program."""


def texts() -> Iterator[tuple[str, int, str]]:
    """Every text of the source but docstrings and declarations, with `{}` for what is filled in."""
    for file in sorted(SOURCE.rglob("*.py")):
        source = file.read_text("utf-8")
        if not OPTION.search(source):
            continue
        parsed = ast.parse(source)
        inner = {id(part) for node in ast.walk(parsed) if isinstance(node, ast.JoinedStr) for part in node.values}
        inner |= {id(node.value) for node in ast.walk(parsed) if isinstance(node, ast.Expr)}
        for node in ast.walk(parsed):
            if isinstance(node, ast.JoinedStr):
                parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
                yield file.relative_to(SOURCE).as_posix(), node.lineno, "".join(map(str, parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
                yield file.relative_to(SOURCE).as_posix(), node.lineno, node.value


@cache
def implemented_in() -> dict[str, set[str]]:
    """The options that the commands of each module of `cli/commands` have."""
    found: dict[str, set[str]] = {}
    for path, command in ALL.items():
        if path != "version":
            module, _ = implementation(path)
            found.setdefault(f"{module.removeprefix('stepwell.').replace('.', '/')}.py", set()).update(command.options)
    return found


def test_an_option_that_a_message_names_is_one_of_its_command() -> None:
    wrong = []
    for file, line, text in texts():
        if file in NOT_OURS or (file.startswith("cli/") and file.count("/") == 1 and file not in SAID_OF):
            continue  # there options are declared
        rest = text
        for path, words in TYPED.findall(text):
            if path in ALL:
                rest = rest.replace(words, "")
                missing = set(OPTION.findall(words)) - ALL[path].options - OF_ALL
                wrong += [f"{file}:{line}: {path} has no {option}" for option in missing]
        for option in OPTION.findall(rest):
            if option in implemented_in().get(file, ()) or (
                file == "cli/commands/dev.py" and option in ALL["work"].options
            ):
                continue
            said_of = SAID_OF.get(file, {}).get(option)
            if said_of is None:
                wrong.append(f"{file}:{line}: say in SAID_OF which commands have {option}")
            wrong += [
                f"{file}:{line}: {path} has no {option}" for path in said_of or () if option not in ALL[path].options
            ]
    assert not wrong, "\n".join(wrong)
