"""The rooms of the package: where a room's code is, and which tests guard it. Every module is in exactly one room."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Room(NamedTuple):
    """The folder it is named after, without the folders below that are rooms themselves."""

    tests: tuple[str, ...]
    """Folders and files below the project. `make mutate ROOM=x` measures and runs only these."""
    also: tuple[str, ...] = ()
    """Files and folders elsewhere in the package that belong to it."""
    door: tuple[str, ...] = ()
    """SQL and Lua are not traced: the tests that run one of these modules are taken to run them."""


_STORE_TESTS = ("tests/stores", "tests/conformance")
_ENGINE_TESTS = ("tests/engine", "tests/simulation")

ROOMS = {
    "base": Room(
        ("tests/base/test_", "tests/cli/test_s", "tests/cli/test_e", "tests/handlers", "tests/server/test_o"),
        also=("__init__.py", "__main__.py", "errors.py"),
    ),
    "base/templates": Room(("tests/base/templates", "tests/define", "tests/handlers")),
    "base/types": Room(("tests/base/types", "tests/engine/test_typed", "tests/define")),
    "answers": Room(
        ("tests/server/test_openapi", "tests/server/test_walk", "tests/cli/test_exit_codes", "tests/pipeline/test_page")
    ),
    "core": Room(("tests/core", *_ENGINE_TESTS)),
    "core/store": Room((*_STORE_TESTS, "tests/core/store")),
    "stores": Room(_STORE_TESTS),
    "stores/sqlite": Room(_STORE_TESTS, door=("stores/sqlite/store.py",)),
    "stores/postgres": Room(_STORE_TESTS, door=("stores/postgres/request.py",)),
    "stores/redis": Room(_STORE_TESTS, door=("stores/redis/store.py",)),
    "define": Room(("tests/define", "tests/engine", "tests/base/types")),
    "define/document": Room(("tests/define", "tests/server", "tests/handlers", "tests/engine/test_documents")),
    "engine": Room(("tests/engine", "tests/forking", "tests/celery/test_hosting")),
    "engine/scheduling": Room(_ENGINE_TESTS),
    "engine/worker": Room(_ENGINE_TESTS),
    "engine/bodies": Room(("tests/engine", "tests/base/test_masking")),
    "engine/reports": Room(("tests/history", "tests/engine", "tests/cli"), also=("engine/show",)),
    "history": Room(("tests/history", "tests/engine", "tests/cli")),
    "handlers": Room(("tests/handlers", "tests/server/test_handlers_elsewhere")),
    "triggers": Room(("tests/triggers", "tests/engine/test_triggers", "tests/server/test_triggers")),
    "pipeline": Room(("tests/pipeline",)),
    "celery": Room(("tests/celery",)),
    "client": Room(("tests/server", "tests/cli/test_server", "tests/cli/test_pipeline_server")),
    "server": Room(("tests/server",)),
    "cli": Room(("tests/cli", "tests/docs", "tests/pipeline/test_commands")),
    "testing": Room(
        ("tests/testing", "tests/docs", "tests/history", "tests/base/test_reducers"), also=("reducers.py",)
    ),
}


def is_in(module: str, paths: Iterable[str]) -> bool:
    """Whether the module is one of these files, or in one of these folders."""
    return any(module == path or module.startswith(f"{path}/") for path in paths)


def room_of(module: str) -> str:
    """The room that a module is in: the deepest folder that is one."""
    return max((name for name, room in ROOMS.items() if is_in(module, (name, *room.also))), key=len, default="")


def rooms_below(folder: str) -> list[str]:
    """The rooms in a folder of the package: "stores" stands for all stores."""
    return [name for name in ROOMS if is_in(name, (folder,))]
