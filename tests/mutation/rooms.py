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


_STORE_TESTS = ("tests/store", "tests/conformance")

ROOMS = {
    "base": Room(("*.py",), ("tests/test_", "tests/cli/test_", "tests/handlers", "tests/server", "tests/templates")),
    "kernel": Room(("kernel", "graph", "model"), ("tests/kernel", "tests/graph", "tests/runner", "tests/simulation")),
    "memory": Room(("store/memory", "store/rules", "store/*.py"), _STORE_TESTS),
    "sqlite": Room(("store/sqlite",), _STORE_TESTS, door=("store/sqlite/store.py",)),
    "postgres": Room(("store/postgres",), _STORE_TESTS, door=("store/postgres/request.py",)),
    "redis": Room(("store/redis",), _STORE_TESTS, door=("store/redis/store.py",)),
    "define": Room(
        ("define/classes", "define/*.py", "define/types", "define/code"),
        ("tests/define", "tests/runner", "tests/types"),
    ),
    "documents": Room(
        ("define/document",), ("tests/define", "tests/server", "tests/handlers", "tests/runner/test_documents")
    ),
    "templates": Room(("templates",), ("tests/templates", "tests/define", "tests/handlers")),
    "types": Room(("types",), ("tests/types", "tests/runner/test_typed", "tests/define")),
    "handlers": Room(("handlers",), ("tests/handlers",)),
    "scheduling": Room(("runner/scheduling",), ("tests/runner", "tests/simulation")),
    "worker": Room(("runner/worker",), ("tests/runner", "tests/simulation")),
    "bodies": Room(("runner/bodies",), ("tests/runner", "tests/test_masking")),
    "engine": Room(
        ("runner/*.py", "runner/aio", "runner/code", "runner/procedures", "runner/runs"),
        ("tests/runner", "tests/forking"),
    ),
    "history": Room(("replay", "runner/reports", "runner/show"), ("tests/replay", "tests/runner", "tests/cli")),
    "celery": Room(("runner/celery", "celery"), ("tests/runner/celery",)),
    "triggers": Room(("triggers",), ("tests/triggers", "tests/runner/test_triggers", "tests/server")),
    "pipeline": Room(("pipeline",), ("tests/pipeline",)),
    "server": Room(("server",), ("tests/server",)),
    "client": Room(("client",), ("tests/server", "tests/cli")),
    "cli": Room(("cli",), ("tests/cli", "tests/pipeline", "tests/docs")),
    "testing": Room(("testing/*.py", "testing/virtual"), ("tests/testing", "tests/docs", "tests/replay")),
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
