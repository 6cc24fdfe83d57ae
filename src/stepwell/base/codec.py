"""Canonical JSON: the one form in which payloads are kept, hashed and compared.

Keys sorted, no spaces, UTF-8, no NaN. The same value always gives the same bytes, whatever the locale or hash seed.

    >>> encode({"b": 1, "a": [True, None]})
    b'{"a":[true,null],"b":1}'
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable
from json.encoder import c_make_encoder, encode_basestring  # type: ignore[attr-defined]
from typing import Any

from ..errors import NotJson

MAX_DEPTH = 200
MAX_BYTES = 256 * 1024 * 1024
"""Of one output, of one input, of all that is recorded of one attempt. SQLite refuses a value of more than a billion."""

_NULL = b"null"
_LISTS = (list, tuple)
_PLAIN = frozenset({str, int, bool, type(None)})
_TEXT = frozenset({str})
_encoder = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, sort_keys=True, separators=(",", ":")
)


def _made_once() -> Callable[[object], str]:
    """Does the same as `_encoder.encode`, without making a C encoder for every value, which takes longer than most values."""
    if c_make_encoder is None:  # a Python without the C part
        return _encoder.encode
    write = c_make_encoder(None, _encoder.default, encode_basestring, None, ":", ",", True, False, False)

    def dumps(value: object) -> str:
        return encode_basestring(value) if isinstance(value, str) else "".join(write(value, 0))

    return dumps


write_json = _made_once()
"""Canonical JSON as a text, of a value that was checked."""
_scan = json.JSONDecoder().scan_once  # type: ignore[attr-defined]


def encode(value: object) -> bytes:
    """The canonical bytes of `value`; raises NotJson, which names the place, when JSON would change or refuse it."""
    if value is None:
        return _NULL
    check(value)
    return encode_checked(value)


def encode_checked(value: object) -> bytes:
    """The canonical bytes of data that the engine made, or has checked before."""
    try:
        return write_json(value).encode("utf-8")
    except UnicodeEncodeError:
        raise NotJson("a string holds half of a surrogate pair, which UTF-8 cannot carry") from None
    except ValueError as error:
        raise NotJson(str(error)) from None


def encode_each(values: Iterable[object]) -> bytes:
    """The canonical bytes of a list of such data, which is made a value at a time: no more of it is in memory at once."""
    return b"[%s]" % b",".join(map(encode_checked, values))


def sha256_of_each(values: Iterable[object]) -> str:
    """The same as `sha256(encode_each(values))`, in less memory."""
    digest, before = hashlib.sha256(), b"["
    for value in values:
        digest.update(before + encode_checked(value))
        before = b","
    digest.update(b"[]" if before == b"[" else b"]")
    return digest.hexdigest()


def check(value: object) -> None:
    """Refuse what `json` would silently change (keys that are not strings) or cannot write."""
    if type(value) not in _PLAIN and not _sound(value, 0):
        _complain(value, (), 0)


def decode(data: bytes | str) -> Any:
    return json.loads(data)


def decode_strictly(data: str) -> Any:
    """The same, but NaN and Infinity raise ValueError."""
    return json.loads(data, parse_constant=_refuse)


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no JSON number")


def text(value: object) -> str:
    """The same as `encode(value).decode()`, but faster."""
    check(value)
    try:
        written = write_json(value)
        if not written.isascii():
            written.encode("utf-8")
    except ValueError:
        encode_checked(value)  # raises an error with the problem
        raise
    return written


def read_back(written: str) -> Any:
    """The value of a text from `text`, as it will be read later."""
    return _scan(written, 0)[0]


def same(left: Any, right: Any) -> bool:
    """Whether two values are the same JSON: true is not 1, but 1 is 1.0.

    >>> same([1, {"a": None}], [1.0, {"a": None}]), same([1], [True])
    (True, False)
    """
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return bool(left == right)


def clean(words: str) -> str:
    """A text that UTF-8 can encode: other characters become escapes."""
    return words if words.isascii() else words.encode("utf-8", "backslashreplace").decode("utf-8")


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _sound(value: object, depth: int) -> bool:
    """Quickly: whether JSON can hold the value."""
    items: Iterable[object]
    if isinstance(value, dict):
        if not _TEXT.issuperset(map(type, value)):
            return False
        items = value.values()
    elif isinstance(value, _LISTS):
        items = value
    else:
        return type(value) is float and math.isfinite(value)
    if depth >= MAX_DEPTH:
        return False
    if not _PLAIN.issuperset(map(type, items)):
        for item in items:  # a generator would take longer than most values
            if type(item) not in _PLAIN and not _sound(item, depth + 1):
                return False
    return True


def _complain(value: object, path: tuple[str | int, ...], depth: int) -> None:
    """Slowly: raise NotJson for the first problem, with its path."""
    kind = type(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise NotJson(f"{value!r} is not a JSON number", path=json_path(path), place=path)
    if value is None or isinstance(value, str | int | float):
        return
    if depth > MAX_DEPTH:
        start = json_path(path[:6])
        raise NotJson(
            f"nested deeper than {MAX_DEPTH} levels, or containing itself", path=f"{start} ...", place=path[:6]
        )
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise NotJson(f"the key {key!r} is not a string", path=json_path(path), place=path)
            _complain(item, (*path, key), depth + 1)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            _complain(item, (*path, index), depth + 1)
    else:
        name = f"{kind.__module__}.{kind.__qualname__}"
        raise NotJson(f"a value of type {name} cannot be kept as JSON", path=json_path(path), place=path)


def json_path(parts: tuple[str | int, ...]) -> str:
    """The place of a value in JSON, as people write it.

    >>> json_path(("nodes", "n_8f3a2b11", "args", "order id", 0))
    '$.nodes.n_8f3a2b11.args["order id"][0]'
    """
    return "$" + "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" if part.isidentifier() else f"[{json.dumps(part)}]"
        for part in parts
    )
