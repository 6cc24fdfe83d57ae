"""Canonical JSON: the one form in which payloads are kept, hashed and compared.

Keys sorted, no spaces, UTF-8, no NaN. The same value always gives the same bytes, whatever the locale or hash seed.

    >>> encode({"b": 1, "a": [True, None]})
    b'{"a":[true,null],"b":1}'
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any, TypeAlias

from .errors import NotJson

Json: TypeAlias = "None | bool | int | float | str | list[Any] | dict[str, Any]"

MAX_DEPTH = 200

_NULL = b"null"
_dumps = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, sort_keys=True, separators=(",", ":")
).encode


def encode(value: object) -> bytes:
    """The canonical bytes of `value`; raises NotJson, which names the place, when JSON would change or refuse it."""
    if value is None:
        return _NULL
    _check(value, (), 0)
    try:
        return _dumps(value).encode("utf-8")
    except UnicodeEncodeError:
        raise NotJson("a string holds half of a surrogate pair, which UTF-8 cannot carry") from None
    except ValueError as error:
        raise NotJson(str(error)) from None


def decode(data: bytes | str) -> Any:
    return json.loads(data)


def text(value: object) -> str:
    """Canonical JSON as a string, for people and for statement parameters that the engine itself made."""
    return encode(value).decode("utf-8")


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _check(value: object, path: tuple[str | int, ...], depth: int) -> None:
    """Refuse what `json` would silently change (keys that are not strings) or cannot write."""
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return
    if kind is float:
        if not math.isfinite(value):  # type: ignore[arg-type]
            raise NotJson(f"{value!r} is not a JSON number", path=_shown(path))
        return
    if depth > MAX_DEPTH:
        raise NotJson(f"nested deeper than {MAX_DEPTH} levels, or containing itself", path=_shown(path[:6]) + " ...")
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise NotJson(f"the key {key!r} is not a string", path=_shown(path))
            _check(item, (*path, key), depth + 1)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            _check(item, (*path, index), depth + 1)
    elif not isinstance(value, str | int | float):
        raise NotJson(f"a value of type {kind.__module__}.{kind.__qualname__} cannot be kept as JSON", path=_shown(path))


def _shown(path: tuple[str | int, ...]) -> str:
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
