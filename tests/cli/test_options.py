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
from stepwell.history import audit_log

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
    "bulk": ["retry"],
    "diff": ["r-none", "r-other"],
    "pause": ["r-none"],
    "resume": ["r-none"],
    "freeze": ["r-none"],
    "import": ["r-none", "d.json"],
    "cancel": ["r-none"],
    "check": ["d.json"],
    "workflow": ["d"],
    "copy": ["sqlite:///a.db", "sqlite:///b.db"],
    "render": ["stored", "a"],
    "try": ["stored", "a"],
    "save": ["d.json"],
    "activate": ["d"],
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


class Performed(NamedTuple):
    """What the function that carries a command out was given."""

    connection: Any
    options: dict[str, Any]
    reason: str | None


@pytest.mark.parametrize("path", [path for path in ALL if path != "version"])
def test_what_is_typed_arrives_at_the_function_that_carries_the_command_out(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(streams, "reserve_stdout", lambda: None)
    monkeypatch.setattr(sys, "path", [*sys.path])
    performed: list[Performed] = []

    class Home:
        def __getattr__(self, verb: str) -> Any:
            def perform(connection: Any, *_: Any, **options: Any) -> None:
                acting = audit_log.acting()
                performed.append(Performed(connection, options, acting[1] if acting else None))

            return perform

    monkeypatch.setattr("stepwell.cli.command.import_module", lambda *_: Home())
    words = [*path.split(), *ARGUMENTS.get(path, ())]
    options = [each for each in ALL[path].click.params if each.param_type_name == "option" and each.name != "help"]
    for option in options:
        typed, value = sample(option)
        preview = ["--dry-run"] if option.name == "as_json" and "--dry-run" in ALL[path].options else []
        ROOT.main([*words, *preview, max(option.opts, key=len), *typed], "stepwell", standalone_mode=False)
        connection, given, reason = performed.pop()
        common = {
            "store": connection.settings.store,
            "server": connection.settings.server,
            "jobs": list(connection.settings.jobs),
            "reason": reason,
        }
        assert {**common, **given}[option.name] == value, option.name


def sample(option: Any) -> tuple[list[str], Any]:
    """What to type for an option, and what it then is."""
    if option.is_flag:
        return [], True
    if option.nargs > 1:
        return ["1", "2"], (1, 2)
    number = {"int": 3, "int range": 3, "float": 2.5, "float range": 2.5}.get(option.type.name)
    text = {"store": "sqlite:///x.db", "server": "http://127.0.0.1:1", "jobs": "jobs_of_x"}.get(option.name, "text")
    value: Any = text if number is None else number
    return [str(value)], [value] if option.multiple else value


@pytest.mark.parametrize("path", [path for path in ALL if path != "version"])
def test_a_command_reads_every_option_that_it_has(path: str) -> None:
    """The function that carries a command out uses each of its parameters, or another function of its module to which it
    hands it on does."""
    home, function = implementation(path)
    unread = {name for name in parameters_of(function) if not is_used(name, function, tree(home))}
    assert not unread - {"connection", "place"}, f"{home}.{function.name} does nothing with {unread}"


def parameters_of(function: ast.FunctionDef) -> list[str]:
    arguments = function.args
    own = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.kwarg]
    return [each.arg for each in own if each is not None]


def is_used(name: str, function: ast.FunctionDef, module: ast.Module) -> bool:
    """Whether a parameter is read other than to throw it away, or to hand it on to a function that does not use it."""
    others = {each.name: each for each in module.body if isinstance(each, ast.FunctionDef)}
    handed_on: set[int] = set()
    for call in (each for each in ast.walk(function) if isinstance(each, ast.Call)):
        other = others.get(call.func.id) if isinstance(call.func, ast.Name) else None
        if other is None or other is function:
            continue
        own = parameters_of(other)
        named = ((each.arg or own[-1], each.value) for each in call.keywords)
        for parameter, value in (*zip(own, call.args, strict=False), *named):
            if isinstance(value, ast.Name) and value.id == name:
                handed_on.add(id(value))
                if is_used(parameter if parameter in own else own[-1], other, module):
                    return True
    thrown_away = {id(each.value) for each in ast.walk(function) if isinstance(each, ast.Expr)}
    return any(
        isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load)
        for each in ast.walk(function)
        if id(each) not in handed_on | thrown_away
    )


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
PREVIEWED = {"retry", "reattempt", "fork", "pause", "resume", "cancel"}
"""Commands that can list what they would do to the nodes of a run."""
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
    "cli/command.py": {"--json": PREVIEWED, "--dry-run": PREVIEWED},
    "cli/documents.py": {
        "--input": {"run", "render", "try", "retry", "resume", "fork"},
        "--input-file": {"run", "render", "try"},
    },
    "cli/find.py": {"--tag": {"run", "ls"}},
    "cli/inputs.py": {"--input": {"run", "retry", "resume", "fork", "graph"}, "--input-file": {"run"}},
    "cli/triggers.py": {"--after": {"trigger add"}},
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
        declared = [node for node in ast.walk(parsed) if isinstance(node, ast.Call) and is_declaration(node)]
        inner |= {id(part) for call in declared for part in ast.walk(call)}
        for node in ast.walk(parsed):
            if isinstance(node, ast.JoinedStr) and id(node) not in inner:
                parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
                yield file.relative_to(SOURCE).as_posix(), node.lineno, "".join(map(str, parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
                yield file.relative_to(SOURCE).as_posix(), node.lineno, node.value


def is_declaration(call: ast.Call) -> bool:
    """Of an argument or option of a command; what its help says is tested by itself."""
    return isinstance(call.func, ast.Name) and call.func.id in ("argument", "option", "flag")


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
        if file in NOT_OURS:
            continue
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
            if file in ("cli/app.py", "cli/command.py") and option in OF_ALL:
                continue
            said_of = SAID_OF.get(file, {}).get(option)
            if said_of is None:
                wrong.append(f"{file}:{line}: say in SAID_OF which commands have {option}")
            wrong += [
                f"{file}:{line}: {path} has no {option}" for path in said_of or () if option not in ALL[path].options
            ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", ALL)
def test_an_option_that_a_help_text_names_is_one_of_its_command(path: str) -> None:
    command = ALL[path]
    helps = [command.click.help or "", *(each.help or "" for each in command.click.params)]
    for text in helps:
        said_of = [other for other, words in TYPED.findall(text) if other in ALL and OPTION.search(words)]
        for option in OPTION.findall(text):
            assert any(option in ALL[each].options for each in (path, *said_of)), f"{path}: {text}"
