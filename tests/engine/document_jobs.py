"""Functions that documents of the tests name, which is allowed to some of their engines."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any


def double(number: int) -> int:
    return number * 2


def twice(number: int, ctx: Any) -> dict[str, Any]:
    return {"total": number * 2, "run": ctx.run_id}


async def later(text: str) -> str:
    return text.upper()


def spoil(data: list[Any]) -> int:
    """Changes what it was given."""
    data.append("spoilt")
    return len(data)


def fail_unless(file: str) -> str:
    if not Path(file).exists():
        raise ValueError(f"{Path(file).name} is not there")
    return "there"


def count(file: str) -> int:
    with Path(file).open("a") as opened:
        opened.write("x")
    return Path(file).stat().st_size


def wait_for(file: str) -> str:
    while not Path(file).exists():
        time.sleep(0.01)
    return "waited"
