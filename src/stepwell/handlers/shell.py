"""`shell`: start a program. Off unless the settings say which programs may be started.

No shell reads the arguments, so nothing in them is special. The program gets a small environment and a process group of its
own, which is killed when the program ends, when its node runs out of time or is cancelled, or when it writes more than it may.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from ..errors import PermanentError, TransientError
from ..masking import holds_secret, mask
from ..replay.effects.record import masked_value
from ..secrets import SecretRef, resolved
from .access import Access
from .registry import Handler

NAME = "shell"
"""What its effects are called."""
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "SYSTEMROOT")
"""Variables of the worker that a program may see. The others may hold anything."""
_SHOWN = 500
"""Characters of what a program complained about that an error shows."""
_CHUNK = 65_536


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("no program can be given a NUL")
    return text


Argument = Annotated[str, AfterValidator(_without_nul)]


class Shell(BaseModel):
    model_config = ConfigDict(extra="forbid")

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


class Ended(BaseModel):
    model_config = ConfigDict(extra="forbid")

    result: Any = Field(description="what it wrote: text, or data with `parse: json`")
    exit_code: int
    stderr: str = Field(description="what it complained about")


def shell(access: Access) -> Handler:
    async def start(ctx: Any, config: Shell) -> dict[str, Any]:
        _check_allowed(access, config.args[0])
        asked = {"args": config.args}
        for name, value in (("stdin", config.stdin), ("env", config.env), ("folder", config.folder)):
            if value:
                asked[name] = _named(value)
        key = ctx.idempotency_key
        ended: dict[str, Any] = await ctx.effect(NAME, _run, access, config, key, request=asked)
        ctx.outcome[NAME] = {"exit_code": ended["exit_code"]}
        if ended["exit_code"] not in config.expected_exit:
            said = ended["stderr"].strip()
            shown = said if len(said) <= _SHOWN else f"... {said[-_SHOWN:]}"
            raise TransientError(
                f"{config.args[0]} ended with {_code(ended['exit_code'])}{f': {shown}' if said else ''}"
            )
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
    if access.shell is True or (access.shell and program in access.shell):
        return
    if not access.shell:
        raise PermanentError(f'the handler shell is off; the settings can allow programs: shell = ["{program}"]')
    raise PermanentError(f"{program!r} may not be started; the settings allow {', '.join(sorted(access.shell))}")


def _named(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _named(item) for key, item in value.items()}
    return str(value)


async def _run(access: Access, config: Shell, key: str) -> dict[str, Any]:
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    environment |= {"STEPWELL_IDEMPOTENCY_KEY": key, **resolved(config.env, access.secrets)}
    stdin = resolved(config.stdin, access.secrets)
    try:
        process = await asyncio.create_subprocess_exec(
            *config.args,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment,
            cwd=config.folder,
            start_new_session=True,
        )
    except OSError as error:
        raise PermanentError(f"{config.args[0]} cannot be started: {error.strerror or error}") from None
    try:
        async with asyncio.TaskGroup() as group:
            written = group.create_task(_read(process.stdout, config))
            complained = group.create_task(_read(process.stderr, config))
            group.create_task(_write(process.stdin, (stdin or "").encode()))
            group.create_task(_end(process))
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    finally:
        if process.returncode is None:
            _kill_group(process)
            await process.wait()
    assert process.returncode is not None
    return {"result": written.result(), "exit_code": process.returncode, "stderr": complained.result()}


async def _end(process: asyncio.subprocess.Process) -> None:
    """What a program left behind ends with it: it would live on, and keep what is read from it open."""
    await process.wait()
    _kill_group(process)


def _kill_group(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


async def _read(stream: asyncio.StreamReader | None, config: Shell) -> str:
    assert stream is not None
    found = bytearray()
    while chunk := await stream.read(_CHUNK):
        found += chunk
        if len(found) > config.max_bytes:
            raise PermanentError(
                f"{config.args[0]} wrote more than {config.max_bytes:,} bytes; `max_bytes` in the config allows more"
            )
    return mask(found.decode("utf-8", "replace"))


async def _write(stream: asyncio.StreamWriter | None, data: bytes) -> None:
    assert stream is not None
    with contextlib.suppress(ConnectionError):  # it does not want to read it all
        stream.write(data)
        await stream.drain()
    with contextlib.suppress(ConnectionError):
        stream.close()
        await stream.wait_closed()


def _parsed(text: str, program: str) -> Any:
    try:
        value = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise PermanentError(f"what {program} wrote is no JSON") from None
    return masked_value(value) if holds_secret(text) else value


def _no_number(text: str) -> Any:
    raise ValueError(text)


def _code(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {-code}"
