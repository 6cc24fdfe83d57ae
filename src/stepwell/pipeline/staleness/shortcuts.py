"""Judging many units fast: those that are made for the first time, and those that were just made. The results are the same as
those of `judge`, which judges whatever these functions cannot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from ..states.records import Record
from ..states.single import Stamp
from .model import Model
from .standing import FRESH
from .units import Unit

Published: TypeAlias = Mapping[str, tuple[Record, Stamp | None]]
"""What was published a moment ago and is in the snapshot, by address: its record, and the stamp of a single file."""
_NOTHING = (None, None)


def is_plainly_missing(model: Model, unit: Unit) -> bool:
    """Whether a unit whose inputs are fresh, and which nothing keeps from running, has neither records nor files."""
    stage, snapshot = unit.stage, model.snapshot
    if unit.clash is not None or unit.missing or stage.quiet or unit.id in snapshot.failures:
        return False
    for name, address in unit.outputs.items():
        if (
            address in snapshot.records
            or stage.outputs[name].kind != "file"
            or model.stamp(address) is not None
            or address in snapshot.publishing
        ):
            return False
    return True


def take_in_made(model: Model, units: Iterable[Unit], published: Published) -> None:
    """Set the standings of units that were just made, and forget those of all units below them."""
    for unit in units:
        unit.standing = FRESH if _is_plainly_fresh(model, unit, published) else None
        # A unit is judged after those above it, so that below one without a standing none has one.
        waiting = _judged_readers(model, unit.outputs.values())
        while waiting:
            reader = waiting.pop()
            reader.standing = None
            waiting += _judged_readers(model, model.paths_of(reader))


def _judged_readers(model: Model, paths: Iterable[str]) -> list[Unit]:
    return [reader for path in paths for reader in model.readers(path) if reader.standing is not None]


def _is_plainly_fresh(model: Model, unit: Unit, published: Published) -> bool:
    """Whether what was published is up to date, as far as this is known without reading anything."""
    stage, producer, hashes = unit.stage, model.producer, model.snapshot.hashes
    if unit.clash is not None or unit.missing or stage.min_size or stage.gates:
        return False
    inputs: dict[str, str | None] = {}
    for path in unit.input_paths():
        maker = producer.get(path)
        if maker is None:
            if path[-1] == "/" or model.has_directories:
                return False
        elif maker.standing is not FRESH:
            return False
        inputs[path] = hashes.get(path)
    current = model.current(stage.name)[:3]
    for address in unit.outputs.values():
        record, stamp = published.get(address, _NOTHING)
        if (
            record is None
            or stamp is None
            or record.inputs != inputs
            or (record.code_hash, record.config_hash, record.check_hash) != current
        ):
            return False
    return True
