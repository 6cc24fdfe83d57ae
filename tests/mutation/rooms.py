"""The rooms of the package: where a room's code is, and which tests guard it. Every module is in exactly one room."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Room(NamedTuple):
    code: tuple[str, ...]
    """Folders and files below the package."""
    tests: tuple[str, ...]
    """Folders and files below the project. `make mutate ROOM=x` measures and runs only these."""
    door: tuple[str, ...] = ()
    """SQL and Lua are not traced: the tests that run one of these modules are taken to run them."""


_STORE_TESTS = ("tests/stores", "tests/conformance")

ROOMS = {
    "base": Room(
        ("*.py", "base/*.py"),
        ("tests/base/test_", "tests/cli/test_", "tests/handlers", "tests/server", "tests/base/templates"),
    ),
    "kernel": Room(
        ("core/kernel", "core/graph", "core/model", "core/*.py"), ("tests/core", "tests/engine", "tests/simulation")
    ),
    "memory": Room(("core/store", "stores/*.py"), (*_STORE_TESTS, "tests/core/store")),
    "sqlite": Room(("stores/sqlite",), _STORE_TESTS, door=("stores/sqlite/store.py",)),
    "postgres": Room(("stores/postgres",), _STORE_TESTS, door=("stores/postgres/request.py",)),
    "redis": Room(("stores/redis",), _STORE_TESTS, door=("stores/redis/store.py",)),
    "define": Room(
        ("define/classes", "define/*.py", "define/types", "define/code"),
        ("tests/define", "tests/engine", "tests/base/types"),
    ),
    "documents": Room(
        ("define/document",), ("tests/define", "tests/server", "tests/handlers", "tests/engine/test_documents")
    ),
    "templates": Room(("base/templates",), ("tests/base/templates", "tests/define", "tests/handlers")),
    "types": Room(("base/types",), ("tests/base/types", "tests/engine/test_typed", "tests/define")),
    "handlers": Room(("handlers",), ("tests/handlers",)),
    "scheduling": Room(("engine/scheduling",), ("tests/engine", "tests/simulation")),
    "worker": Room(("engine/worker",), ("tests/engine", "tests/simulation")),
    "bodies": Room(("engine/bodies",), ("tests/engine", "tests/base/test_masking")),
    "engine": Room(
        ("engine/*.py", "engine/aio", "engine/code", "engine/procedures", "engine/runs"),
        ("tests/engine", "tests/forking"),
    ),
    "history": Room(("history", "engine/reports", "engine/show"), ("tests/history", "tests/engine", "tests/cli")),
    "celery": Room(("celery",), ("tests/celery",)),
    "triggers": Room(("triggers",), ("tests/triggers", "tests/engine/test_triggers", "tests/server")),
    "pipeline": Room(("pipeline",), ("tests/pipeline",)),
    "server": Room(("server",), ("tests/server",)),
    "client": Room(("client",), ("tests/server", "tests/cli")),
    "cli": Room(("cli",), ("tests/cli", "tests/pipeline", "tests/docs")),
    "testing": Room(("testing", "reducers.py", "errors.py"), ("tests/testing", "tests/docs", "tests/history")),
}


def is_in(module: str, paths: Iterable[str]) -> bool:
    """Whether the module is one of these files, or in one of these folders; `*.py` are the files of a folder itself."""
    folder, _, _ = module.rpartition("/")
    return any(
        module == path or module.startswith(f"{path}/") or (path.endswith("*.py") and folder == path[:-4].rstrip("/"))
        for path in paths
    )


def room_of(module: str) -> str:
    """The room that a module is in; the conformance suite is in none, since it is a test."""
    return next((name for name, room in ROOMS.items() if is_in(module, room.code)), "")
