"""Judging many units fast: those that are made for the first time, and those that were just made. The results are the same as
those of `judge`, which judges whatever these functions cannot.
"""

from __future__ import annotations

from collections.abc import Iterable

from .model import Model
from .standing import FRESH
from .units import Unit


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


def take_in_made(model: Model, units: Iterable[Unit]) -> None:
    """Set the standings of units that were just made, and forget those of all units below them."""
    for unit in units:
        unit.standing = FRESH if _is_plainly_fresh(model, unit) else None
        waiting = [reader for path in unit.outputs.values() for reader in model.readers(path)]
        while waiting:
            reader = waiting.pop()
            # A unit is judged after those above it, so that below one without a standing none has one.
            if reader.standing is not None:
                reader.standing = None
                waiting += [below for path in model.paths_of(reader) for below in model.readers(path)]


def _is_plainly_fresh(model: Model, unit: Unit) -> bool:
    """Whether records and files are up to date, as far as this is known without reading anything."""
    stage, snapshot = unit.stage, model.snapshot
    if unit.clash is not None or unit.missing or stage.min_size or stage.gates:
        return False
    records, hashes, current = snapshot.records, snapshot.hashes, model.current(stage.name)
    inputs: dict[str, str | None] = {}
    for path in unit.input_paths():
        maker = model.producer.get(path)
        if maker is None:
            if path[-1] == "/" or model.has_directories:
                return False
        elif maker.standing is not FRESH:
            return False
        inputs[path] = hashes.get(path)
    for address in unit.outputs.values():
        record = records.get(address)
        if (
            record is None
            or record.inputs != inputs
            or record.content_hash != hashes.get(address)
            or record.code_hash != current.code_hash
            or record.config_hash != current.config_hash
            or record.check_hash != current.check_hash
            or record.stale
            or model.stamp(address) is None
        ):
            return False
    return True
