"""A dictionary that keeps the entries used last."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Recent(OrderedDict[Key, Value]):
    """Keeps the `limit` entries that were set or got last.

    >>> recent = Recent(2)
    >>> recent["a"], recent["b"], recent["c"] = 1, 2, 3
    >>> list(recent)
    ['b', 'c']
    """

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def __setitem__(self, key: Key, value: Value) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self._limit:
            self.popitem(last=False)

    def get(self, key: Key) -> Value | None:  # type: ignore[override]
        try:
            self.move_to_end(key)
            return self[key]
        except KeyError:  # also when another thread has just made room
            return None
