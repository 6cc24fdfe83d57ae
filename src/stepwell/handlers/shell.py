"""`shell`: start a program. Off unless the settings say which programs may be started.

No shell reads the arguments, so nothing in them is special. The program gets a small environment and a process group of its
own, which is killed when the program ends, when its node runs out of time or is cancelled, or when it writes more than it may.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, Field

from ..codec import decode_strictly
from ..errors import PermanentError, TransientError
from ..masking import holds_secret, mask
from ..replay.effects.record import masked_value
from ..secrets import SecretRef, resolved
from .access import Access
from .definition import Handler
from .http.outgoing import named
from .strict import Strict

NAME = "shell"
"""What its effects are called."""
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "SYSTEMROOT")
"""Variables of the worker that a program gets. The others may be secret."""
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
        {}, description="variables, besides PATH, HOME and those of the language"
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


async def _run(access: Access, config: Shell, key: str) -> dict[str, Any]:
    _check_allowed(access, config.args[0])
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    environment |= {"STEPWELL_IDEMPOTENCY_KEY": key, **resolved(config.env, access.secrets)}
    stdin: str = resolved(config.stdin, access.secrets) or ""
    loop = asyncio.get_running_loop()
    program = _Program(config.max_bytes, loop.create_future())
    try:
        await loop.subprocess_exec(
            lambda: program, *config.args, env=environment, cwd=config.folder, start_new_session=True
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
    """A running program. It has ended when its whole process group has."""

    transport: asyncio.SubprocessTransport

    def __init__(self, max_bytes: int, ended: asyncio.Future[None]) -> None:
        self._max_bytes = max_bytes
        self._written = {1: bytearray(), 2: bytearray()}
        self.ended = ended
        self.wrote_too_much = False

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

    def text(self, fd: int) -> str:
        return mask(self._written[fd].decode("utf-8", "replace"))

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.transport.get_pid(), signal.SIGKILL)


def _parsed(text: str, program: str) -> Any:
    try:
        value = decode_strictly(text)
    except (ValueError, RecursionError):
        raise PermanentError(f"what {program} wrote is no JSON") from None
    return masked_value(value) if holds_secret(text) else value
