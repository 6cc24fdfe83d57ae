"""`stepwell init`: a small project to begin with."""

from __future__ import annotations

import importlib.util
import re
from importlib.resources import files
from pathlib import Path

from ...errors import InputError
from ...testing import speedrun
from ..connect import Connection
from ..streams import say

FILES = ("README.md", "orders.py", "pyproject.toml", "tests/test_orders.py")
CASSETTE = "tests/order.cassette.json"
_TEMPLATES = "stepwell.cli.new_project"


def init(connection: Connection, folder: str) -> None:
    home = Path(folder)
    there = [name for name in (*FILES, CASSETTE) if (home / name).exists()]
    if there:
        raise InputError(f"{home} has {', '.join(there)} already; name another folder, as in `stepwell init orders`")
    name = re.sub(r"[^a-z0-9]+", "-", home.resolve().name.lower()).strip("-") or "orders"
    for each in FILES:
        target = home / each
        target.parent.mkdir(parents=True, exist_ok=True)
        text = files(_TEMPLATES).joinpath(each).read_text(encoding="utf-8")
        target.write_text(text if each.endswith(".py") else text.replace("{name}", name), encoding="utf-8")
    _record(home)
    say(
        f"wrote {', '.join(str(home / each) for each in (*FILES, CASSETTE))}\n"
        f"next: {'' if folder == '.' else f'cd {home} && '}python orders.py, then pytest"
    )


def _record(home: Path) -> None:
    """A cassette of a run, recorded with the code that was just written."""
    spec = importlib.util.spec_from_file_location("orders", home / "orders.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    speedrun(module.Order(order_id=7), run_id="recorded").export(home / CASSETTE, missing_code_ok=True)
