"""The manifests of a root: `.manifest.json` in each directory that has states."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from ...errors import ManifestError
from .logged import Logged, store_changes
from .records import Record, record_from


def split_address(address: str) -> tuple[str, str]:
    """The directory whose manifest has a state, with a final `/` unless it is the root, and the key it has there.

    >>> split_address("final/a.md"), split_address("audio/a/"), split_address("chapters/moby/{part}/{n}.txt")
    (('final/', 'a.md'), ('audio/', 'a/'), ('chapters/moby/', '{part}/{n}.txt'))
    """
    head = address.removesuffix("/").partition("{")[0]
    cut = head.rfind("/") + 1
    return address[:cut], address[cut:]


def draft_name(key: str) -> str:
    """What the name of a draft ends with: the key, as far as a file can have it as a name."""
    return key.removesuffix("/").replace("{", "(").replace("}", ")").replace("/", "+")


class Manifests:
    """Records of states, by address."""

    def __init__(self, root: str, pipeline: str) -> None:
        self._root = root
        self._pipeline = pipeline

    def read(self, folder: str) -> dict[str, Record]:
        """The records of one directory."""
        prefix = f"{folder}/" if folder else ""
        logged = self._logged(prefix)
        found = {}
        for key, value in logged.read().items():
            try:
                found[prefix + key] = record_from(value)
            except (KeyError, TypeError, AttributeError):
                raise ManifestError(
                    f"{logged.json_path}: the record of {key!r} is incomplete; remove it there, and `stepwell pipeline accept` "
                    f"takes the state over as it is",
                    pipeline=self._pipeline,
                    path=logged.json_path,
                ) from None
        return found

    def find(self, addresses: Iterable[str]) -> dict[str, Record]:
        wanted = set(addresses)
        folders = {split_address(address)[0].removesuffix("/") for address in wanted}
        return {
            address: record for folder in folders for address, record in self.read(folder).items() if address in wanted
        }

    def change(self, changes: Mapping[str, Record | None]) -> None:
        """Store changes durably. Who calls it holds the lock of the root."""
        folders: dict[str, dict[str, object]] = {}
        for address, record in changes.items():
            folder, key = split_address(address)
            folders.setdefault(folder, {})[key] = None if record is None else record.to_json()
        store_changes([(self._logged(folder), changed) for folder, changed in folders.items()])

    def fold(self, addresses: Iterable[str], *, always: bool = False) -> None:
        for folder in {split_address(address)[0] for address in addresses}:
            self._logged(folder).fold(always=always)

    def _logged(self, folder: str) -> Logged:
        return Logged(os.path.join(self._root, folder, ".manifest"), "states", self._pipeline)
