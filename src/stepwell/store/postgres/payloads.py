"""Payloads on their way in: large ones are kept once for each run, and rows hold references."""

from __future__ import annotations

from collections.abc import Sequence

from ..rules.payloads import is_large, reference


class Packer:
    """The arrays that the rows of a batch's sets are cut from, and the large payloads of the batch."""

    def __init__(self) -> None:
        self.claims: list[str | None] = []
        self.ordinals: list[int] = []
        self.codes: list[int] = []
        self.numbers: list[int] = []
        self.kinds: list[str | None] = []
        self.first: list[bytes | None] = []
        self.second: list[bytes | None] = []
        self.third: list[bytes | None] = []
        self.large: list[bytes] = []

    @property
    def size(self) -> int:
        return len(self.first)

    def add(
        self,
        first: bytes | None = None,
        second: bytes | None = None,
        third: bytes | None = None,
        *,
        claim: str | None = None,
        ordinal: int = 0,
        code: int = 0,
        number: int = 0,
        kind: str | None = None,
    ) -> None:
        self.claims.append(claim)
        self.ordinals.append(ordinal)
        self.codes.append(code)
        self.numbers.append(number)
        self.kinds.append(kind)
        self.first.append(first)
        self.second.append(second)
        self.third.append(third)

    def shorten(self, payload: bytes | None, place: int, large: list[tuple[int, int]]) -> bytes | None:
        """What a row holds of a payload. `large` gets those that are to be kept: (row of its set, number from 1)."""
        if payload is None or not is_large(payload):
            return payload
        self.large.append(payload)
        large.append((place, len(self.large)))
        return reference(payload)

    def arrays(self) -> tuple[str | None, ...]:
        """As the function takes them; None where no row has anything. Written here: the driver takes ten times as long."""
        if not self.first:
            return (None,) * 9
        named = any(claim is not None for claim in self.claims)
        return (
            texts(self.claims) if named else None,
            _numbers(self.ordinals) if named else None,
            _numbers(self.codes) if named else None,
            _numbers(self.numbers) if named else None,
            texts(self.kinds) if any(self.kinds) else None,
            _bytes(self.first),
            _bytes(self.second) if any(value is not None for value in self.second) else None,
            _bytes(self.third) if any(value is not None for value in self.third) else None,
            _bytes(self.large) if self.large else None,
        )


def _numbers(values: list[int]) -> str:
    return f"{{{','.join(map(str, values))}}}"


def texts(values: list[str | None]) -> str:
    """
    >>> print(texts(["a", None, 'say "hi"']))
    {"a",NULL,"say \\"hi\\""}
    """
    written = {
        value: "NULL" if value is None else '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        for value in set(values)
    }
    return f"{{{','.join([written[value] for value in values])}}}"


def _bytes(values: Sequence[bytes | None]) -> str:
    return "{" + ",".join(["NULL" if value is None else f'"\\\\x{value.hex()}"' for value in values]) + "}"
