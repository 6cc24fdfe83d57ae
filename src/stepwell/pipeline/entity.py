"""`Entity`: the values of the variables of a pattern, as a body sees them."""

from __future__ import annotations

from collections.abc import Mapping


class Entity:
    """One entity: `entity.id`, and each variable as `entity.date` or `entity["date"]`. `path` is its input's, in the store."""

    __slots__ = ("_values", "id", "path")

    def __init__(self, values: Mapping[str, str], path: str = "") -> None:
        self._values = dict(values)
        self.id = "/".join(self._values.values())
        self.path = path

    def __getattr__(self, name: str) -> str:
        try:
            return self._values[name]
        except KeyError:
            raise AttributeError(f"the entity {self.id!r} has no {name!r}; it has {', '.join(self._values)}") from None

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Entity) and other._values == self._values

    def __hash__(self) -> int:
        return hash(self.id)

    def __str__(self) -> str:
        return self.id

    def __repr__(self) -> str:
        return f"Entity({self.id!r})"

    @property
    def values(self) -> Mapping[str, str]:
        return dict(self._values)
