"""The cache of content hashes, and of the last verdict: a file that may be deleted at any time.

stepwell-cache 1 <length of header>\\n
{"verdict": ..., "folders": [[path, names, recent, manifest, manifest hash], ...]}       JSON
for each folder: the stamps (4 x 8 bytes for each name), then the hashes (32 bytes each)
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from .listing import Folder
from .single import Stamp

_MAGIC = b"stepwell-cache 1 "
UNKNOWN = b"\0" * 32


class Cached(NamedTuple):
    """What was known of one directory."""

    names: list[str]
    stamps: bytes
    hashes: bytes
    recent: list[int]
    """Positions whose hash may be out of date."""
    manifest: list[Any]
    """The stamps of its manifest."""
    manifest_hash: str
    """Of a manifest that was written a moment before; otherwise empty."""

    def known(self, names: Collection[str]) -> dict[str, tuple[Stamp, str]]:
        """The hash of each of these names that is sure to hold for its stamp."""
        numbers = array("Q", self.stamps)
        doubtful = set(self.recent)
        digests = self.hashes.hex()
        found = {}
        for position, name in enumerate(self.names):
            if name not in names:
                continue
            digest = digests[position * 64 : position * 64 + 64]
            if position not in doubtful and digest != _UNKNOWN_HEX:
                at = position * 4
                found[name] = ((numbers[at], numbers[at + 1], numbers[at + 2], numbers[at + 3]), digest)
        return found

    def changed(self, folder: Folder) -> list[str] | None:
        """The names whose stamps are others; None if some were added or removed."""
        numbers, known = folder.stamps.tobytes(), self.stamps
        if folder.names == self.names:
            if numbers == known:
                return []
            places = range(0, len(numbers), _STAMP_BYTES)
            return [
                name
                for name, at in zip(self.names, places, strict=True)
                if numbers[at : at + _STAMP_BYTES] != known[at : at + _STAMP_BYTES]
            ]
        if len(folder.names) != len(self.names):
            return None
        before, now = _by_name(self.names, known), _by_name(folder.names, numbers)
        return [name for name in now if now[name] != before[name]] if before.keys() == now.keys() else None

    def with_part(self, part: Cached, still_recent: Collection[int]) -> Cached:
        """The same with what was found of some names."""
        stamps, hashes = bytearray(self.stamps), bytearray(self.hashes)
        at = {name: position for position, name in enumerate(part.names)}
        recent = []
        for position, name in enumerate(self.names):
            there = at.get(name)
            if there is None:
                if position in still_recent:
                    recent.append(position)
                continue
            one, other = position * _STAMP_BYTES, there * _STAMP_BYTES
            stamps[one : one + _STAMP_BYTES] = part.stamps[other : other + _STAMP_BYTES]
            hashes[one : one + _STAMP_BYTES] = part.hashes[other : other + _STAMP_BYTES]
            if there in part.recent:
                recent.append(position)
        return Cached(self.names, bytes(stamps), bytes(hashes), recent, part.manifest, part.manifest_hash)


_STAMP_BYTES = 32
"""Of a stamp; a hash has as many."""


def _by_name(names: Sequence[str], stamps: bytes) -> dict[str, bytes]:
    places = range(0, len(stamps), _STAMP_BYTES)
    return {name: stamps[at : at + _STAMP_BYTES] for name, at in zip(names, places, strict=True)}


_UNKNOWN_HEX = UNKNOWN.hex()


class Cache(NamedTuple):
    folders: dict[str, Cached]
    verdict: dict[str, Any]


EMPTY = Cache({}, {})


def read_cache(whole: bytes) -> Cache:
    """What was cached; nothing if it is damaged."""
    try:
        if not whole.startswith(_MAGIC):
            return EMPTY
        line = whole.index(b"\n")
        start = line + 1
        end = start + int(whole[len(_MAGIC) : line])
        header = json.loads(whole[start:end])
        folders = {}
        for name, names, recent, manifest, manifest_hash in header["folders"]:
            stamps, hashes = end + 32 * len(names), end + 64 * len(names)
            if hashes > len(whole):
                return EMPTY
            folders[name] = Cached(names, whole[end:stamps], whole[stamps:hashes], recent, manifest, manifest_hash)
            end = hashes
        return Cache(folders, header["verdict"])
    except (ValueError, KeyError, TypeError):
        return EMPTY


def written_cache(folders: Iterable[tuple[str, Cached]], verdict: dict[str, Any]) -> bytes:
    given = list(folders)
    # Names of files that are no text are half surrogate pairs, which JSON can hold as escapes only.
    known = [[name, each.names, each.recent, each.manifest, each.manifest_hash] for name, each in given]
    header = json.dumps({"verdict": verdict, "folders": known}, separators=(",", ":")).encode()
    pieces = [_MAGIC + b"%d\n" % len(header), header]
    for _, each in given:
        pieces += (each.stamps, each.hashes)
    return b"".join(pieces)
