"""`shell`: start a program. Off unless the settings say which programs may be started.

No shell reads the arguments, so nothing in them is special. The program is the one that the worker finds by its name; it gets a
small environment, and all that it starts is killed when it ends, when its node runs out of time or is cancelled, or when it
writes more than it may.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
from collections.abc import Mapping
from secrets import token_hex
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, Field

from ..base.codec import decode_strictly
from ..base.masking import mask
from ..base.secret_refs import SecretRef
from ..base.secrets import resolved
from ..errors import PermanentError, TransientError
from ..history.effects.record import masked_data
from .access import Access
from .definition import Handler
from .descendants import MARK, kill_descendants
from .http.outgoing import named
from .strict import Strict

NAME = "shell"
"""What its effects are called."""
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "SYSTEMROOT")
"""Variables of the worker that a program gets. The others may be secret."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DECIDES = re.compile(
    r"""(?: .*(?:PATH|HOME|CONFIG|PRELOAD|STARTUP|ASKPASS|PAGER|EDITOR|BROWSER|SHELL|PROXY|WRAPPER|OPTIONS|OPTS?|FLAGS|RC)
    | .*_(?:CONF|CONFIG_.*|COMMAND|CMD|EXEC|DIRS?|LIBS?|MODULES?|PLUGINS?|LAUNCHER)
    | (?:LD|DYLD|GLIBC|GCONV|MALLOC|GIT|GEM|BUNDLE|NODE|NPM|COR|CORECLR|DOTNET|ERL|R|RES|SSH|OPENSSL|XDG|STEPWELL)_.*
    | (?:BASH|GUILE|JAVA|_JAVA|JDK|LESS|LUA|PERL|PHP|PYTHON|RUBY|TERMINFO|TCL).*
    | ENV | IFS | PS[0-4] | SHELLOPTS | VISUAL | TMP | TEMP | TMPDIR | TERMCAP | ZDOTDIR | HOSTALIASES | LOCALDOMAIN )""",
    re.VERBOSE | re.IGNORECASE,
)
"""Variables that decide which program or code runs, or which files tell it what to do."""
_SHOWN = 500
"""Characters of stderr that an error shows."""


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("no program can be given a NUL")
    return text


Argument = Annotated[str, AfterValidator(_without_nul)]


class Shell(Strict):
    args: list[Argument] = Field(
        min_length=1,
        max_length=1_000,
        description="the program and its arguments, each as it is. No secrets: everybody on the machine can see arguments",
    )
    stdin: str | SecretRef | None = Field(None, description="what the program reads")
    env: dict[str, Argument | SecretRef] = Field(
        {},
        description="variables, besides PATH, HOME and those of the language. Where only some programs may be started: none "
        "that decides what a program loads or runs",
    )
    folder: Argument | None = Field(None, description="where it runs; by default where the worker does")
    parse: Literal["text", "json"] = Field("text", description="how to read what it writes")
    expected_exit: list[int] = Field([0], description="exit codes that are no failure")
    max_bytes: int = Field(
        1_000_000, ge=1, le=100_000_000, description="of what it writes, and of what it complains about"
    )


class Ended(Strict):
    result: Any = Field(description="what it wrote: text, or data with `parse: json`")
    exit_code: int = Field(description="0, or another that is no failure")
    stderr: str = Field(description="what it complained about")


def shell(access: Access) -> Handler:
    async def start(ctx: Any, config: Shell) -> dict[str, Any]:
        asked = {"args": config.args}
        for name, value in (("stdin", config.stdin), ("env", config.env), ("folder", config.folder)):
            if value:
                asked[name] = named(value)
        key = ctx.idempotency_key
        ended: dict[str, Any] = await ctx.effect(NAME, _run, access, config, key, request=asked)
        ctx.outcome[NAME] = {"exit_code": ended["exit_code"]}
        if ended["exit_code"] not in config.expected_exit:
            said = ended["stderr"].strip()
            shown = said if len(said) <= _SHOWN else f"... {said[-_SHOWN:]}"
            code = ended["exit_code"]
            how = f"exit code {code}" if code >= 0 else f"signal {-code}"
            raise TransientError(f"{config.args[0]} ended with {how}{f': {shown}' if said else ''}")
        if config.parse == "json":
            ended["result"] = _parsed(ended["result"], config.args[0])
        return ended

    return Handler(
        "shell",
        start,
        Shell,
        Ended,
        'Start a program with a list of arguments. Off unless the settings allow it: shell = ["pandoc"].',
        {"args": ["pandoc", "--to", "html"], "stdin": "{{ fetch.result }}"},
        side_effects="recordable",
        keeps_secrets=True,
    )


def _check_allowed(access: Access, program: str) -> None:
    if not hasattr(os, "killpg"):
        raise PermanentError("the handler shell needs process groups, which this system does not have")
    if access.shell is True or (access.shell and program in access.shell):
        return
    if not access.shell:
        raise PermanentError(f'the handler shell is off; the settings can allow programs: shell = ["{program}"]')
    raise PermanentError(f"{program!r} may not be started; the settings allow {', '.join(sorted(access.shell))}")


def _check_variables(access: Access, given: Mapping[str, str]) -> None:
    """Refuse variables with which an allowed name would run another program, or other code."""
    for name in given:
        if not _NAME.fullmatch(name):
            raise PermanentError(f"env: {name[:100]!r} cannot be the name of a variable: use letters, digits and _")
        if access.shell is not True and _DECIDES.fullmatch(name):
            raise PermanentError(
                f"env: {name} may not be given: it can decide what a program loads or runs, and the settings allow only some "
                f"programs; start a script that sets it"
            )


def _path_of(program: str) -> str:
    """The program that the worker finds, wherever it is to run: a folder of the PATH may be relative, too."""
    path = shutil.which(program)
    if path is None:
        raise PermanentError(f"{program} cannot be started: No such file or directory, or it is not executable")
    return os.path.abspath(path)


async def _run(access: Access, config: Shell, key: str) -> dict[str, Any]:
    _check_allowed(access, config.args[0])
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    given = resolved(config.env, access.secrets)
    _check_variables(access, given)
    mark = token_hex(16)
    environment |= {**given, "STEPWELL_IDEMPOTENCY_KEY": key, MARK: mark}
    executable = _path_of(config.args[0])
    stdin: str = resolved(config.stdin, access.secrets) or ""
    loop = asyncio.get_running_loop()
    program = _Program(config.max_bytes, loop.create_future(), mark)
    try:
        await loop.subprocess_exec(
            lambda: program,
            *config.args,
            executable=executable,
            env=environment,
            cwd=config.folder,
            start_new_session=True,
        )
    except OSError as error:
        raise PermanentError(f"{config.args[0]} cannot be started: {error.strerror or error}") from None
    try:
        program.read(stdin.encode())
        await program.ended
    finally:
        await program.end()
    if program.wrote_too_much:
        limit = f"{config.max_bytes:,} bytes; `max_bytes` in the config allows more"
        raise PermanentError(f"{config.args[0]} wrote more than {limit}")
    return {"result": program.text(1), "exit_code": program.transport.get_returncode(), "stderr": program.text(2)}


class _Program(asyncio.SubprocessProtocol):
    """A running program. It has ended when all that it has started has."""

    transport: asyncio.SubprocessTransport

    def __init__(self, max_bytes: int, ended: asyncio.Future[None], mark: str) -> None:
        self._mark = mark
        self._max_bytes = max_bytes
        self._written = {1: bytearray(), 2: bytearray()}
        self.ended = ended
        self.wrote_too_much = False
        self._killing: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if len(self._written[fd]) + len(data) > self._max_bytes:
            self.wrote_too_much = True
            self._kill()
        if not self.wrote_too_much:
            self._written[fd] += data

    def process_exited(self) -> None:
        """Kill what it left behind, which would keep its pipes open."""
        self._kill()

    def connection_lost(self, error: BaseException | None) -> None:
        if not self.ended.done():
            self.ended.set_result(None)

    def read(self, data: bytes) -> None:
        """Send it its input."""
        stdin = cast("asyncio.WriteTransport", self.transport.get_pipe_transport(0))
        stdin.write(data)
        stdin.write_eof()

    async def end(self) -> None:
        if not self.ended.done() or self.ended.cancelled():
            self._kill()
        self.transport.close()
        if self.ended.cancelled():  # nobody waits any more, but the loop must still see it end
            for _ in range(100):
                if self.transport.get_returncode() is not None:
                    break
                await asyncio.sleep(0.01)
        if self._killing is not None:
            await asyncio.shield(self._killing)

    def text(self, fd: int) -> str:
        return mask(self._written[fd].decode("utf-8", "replace"))

    def _kill(self) -> None:
        """Kill its group at once, and in a thread what left that: looking for it takes a few milliseconds."""
        process = self.transport.get_pid()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process, signal.SIGKILL)
        root = process if self.transport.get_returncode() is None else None  # the number may be another process's soon
        self._killing = asyncio.get_running_loop().run_in_executor(None, kill_descendants, self._mark, root)


def _parsed(text: str, program: str) -> Any:
    try:
        value = decode_strictly(text)
    except (ValueError, RecursionError):
        raise PermanentError(f"what {program} wrote is no JSON") from None
    return masked_data(value)
