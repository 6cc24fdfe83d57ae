"""The model of a pipeline at one moment: its units, which of them makes the inputs of which, and the standing of each."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from ..patterns.paths import folded
from ..patterns.pattern import Pattern
from ..states.address import member_paths
from ..states.records import EXISTS, Record, members_hash
from ..states.single import Stamp
from ..states.snapshot import Snapshot
from .connections import Connections, Reading
from .judge import Current, OutputFacts, UnitFacts, Upstream, judge
from .standing import FRESH, Standing
from .units import Found, Key, Unit, feeder, key_variables, units_of


class Model:
    """Units and their standings. A unit is judged when its standing is first asked for."""

    def __init__(
        self,
        name: str,
        connections: Connections,
        snapshot: Snapshot,
        current: Callable[[str], Current],
        now: Callable[[], float],
        is_valid: Callable[[Unit, str, Record], bool],
    ) -> None:
        self.name = name
        self.connections = connections
        self.snapshot = snapshot
        self.current = current
        self._now = now
        self._is_valid = is_valid
        self.units: dict[str, dict[Key, Unit]] = {}
        self.producer: dict[str, Unit] = {}
        """The unit that makes a path: a file, a directory, or a member."""
        self.consumers: dict[str, list[Unit]] = {}
        self.orphans: dict[str, Record] = {}
        self.ambiguous: list[tuple[str, str]] = []
        """Paths that match a pattern in more than one way, and that pattern."""
        self._folders: list[str] = []
        self.has_directories = any(pattern.is_directory for pattern in connections.patterns)
        self._has_members = {stage.name: stage.has_members for stage in connections.order}
        self._build()

    def _build(self) -> None:
        self._folders = sorted(self.snapshot.tree)
        mine = f"{self.name}#"
        owned: dict[str, str] = {}  # files of states that this pipeline made, with their states
        stages = {stage.name for stage in self.connections.order}
        for address, record in self.snapshot.records.items():
            by = record.produced_by
            if by.startswith(mine) and by[len(mine) :] in stages:
                if record.members is None:
                    owned[address] = address
                else:
                    owned.update(dict.fromkeys(member_paths(address, record.members), address))
        readings = [each for stage in self.connections.order for each in self.connections.readings[stage.name]]
        found: dict[tuple[str, str], Found] = {(each.stage.name, each.name): {} for each in readings}
        self._match_sources(readings, owned, found)
        for each in found.values():
            for paths in each.values():
                paths.sort()
        seen: dict[str, str] = {}
        claimed: set[str] = set()
        for stage in self.connections.order:
            own = self.connections.readings[stage.name]
            units = units_of(stage, own, {each.name: found[stage.name, each.name] for each in own})
            self.units[stage.name] = {unit.key: unit for unit in units}
            feeders = [
                feeder(stage, each, found[each.stage.name, each.name], self.paths_of)
                for each in readings
                if stage.name in each.writers
            ]
            formats = {name: output.pattern.format_for(stage.variables) for name, output in stage.outputs.items()}
            for unit in units:
                self._place(unit, formats, seen, claimed)
                for feed in feeders:
                    feed(unit)
        self.orphans = {
            address: self.snapshot.records[address]
            for address in dict.fromkeys(owned.values())
            if address not in claimed
        }

    def _match_sources(
        self, readings: list[Reading], owned: Mapping[str, str], found: Mapping[tuple[str, str], Found]
    ) -> None:
        for folder, names in self.snapshot.tree.items():
            components = folder.split("/") if folder else []
            for reading in readings:
                pattern, into = reading.pattern, found[reading.stage.name, reading.name]
                values = pattern.match_folder(components)
                if values is None:
                    if pattern.is_ambiguous_folder(components):
                        self.ambiguous.append((folder, pattern.text))
                    continue
                if not pattern.is_directory:
                    self._match_names(reading, folder, names, values, owned, into)
                elif reading.stage.filters.get(reading.name) != "hasFiles" or any(
                    self.files_below(f"{folder}/", reading.excluded)
                ):
                    into.setdefault(tuple(values[name] for name in key_variables(reading)), []).append(f"{folder}/")

    def _match_names(
        self,
        reading: Reading,
        folder: str,
        names: Collection[str],
        values: Mapping[str, str],
        owned: Mapping[str, str],
        into: Found,
    ) -> None:
        component = reading.pattern.components[-1]
        prefix = f"{folder}/" if folder else ""
        variables = key_variables(reading)
        if any(each.is_directory and each.covers(f"{folder}/x") for each in reading.excluded):
            return
        components = folder.split("/") if folder else []
        excluded = [
            pattern.components[-1] for pattern in reading.excluded if pattern.match_folder(components) is not None
        ]
        if component.literal is not None:
            names = [component.literal] if component.literal in names else []
        for name in names:
            path = prefix + name
            if path in owned or name[0] == ".":
                continue
            matched = component.match(name)
            if matched is None:
                if component.is_ambiguous(name):
                    self.ambiguous.append((path, reading.pattern.text))
                continue
            if values and any(values.get(key, value) != value for key, value in matched.items()):
                continue
            if excluded and any(each.match(name) is not None for each in excluded):
                continue
            own = {**values, **matched} if values else matched
            into.setdefault(tuple([own[key] for key in variables]), []).append(path)

    def _place(self, unit: Unit, formats: Mapping[str, str], seen: dict[str, str], claimed: set[str]) -> None:
        """Set the addresses of a unit's outputs, and enter it in `producer` and `consumers`."""
        outputs = unit.outputs
        for name, text in formats.items():
            outputs[name] = address = text.format(*unit.key)
            alike = folded(address)
            if seen.setdefault(alike, address) != address:
                unit.clash = seen[alike]
            claimed.add(address)
        for path in self.paths_of(unit):
            self.producer[path] = unit
        consumers = self.consumers
        for path in unit.input_paths():
            if path in consumers:
                consumers[path].append(unit)
            else:
                consumers[path] = [unit]

    def paths_of(self, unit: Unit) -> list[str]:
        """The paths that a unit makes. Of members only those it made last are known."""
        if not self._has_members[unit.stage.name]:
            return list(unit.outputs.values())
        paths = []
        for name, address in unit.outputs.items():
            if unit.stage.outputs[name].kind != "members":
                paths.append(address)
            elif (record := self.snapshot.records.get(address)) is not None and record.members is not None:
                paths += member_paths(address, record.members)
        return paths

    def all_units(self) -> Iterator[Unit]:
        for stage in self.connections.order:
            yield from self.units[stage.name].values()

    def stamp(self, path: str) -> Stamp | None:
        folder, _, name = path.rpartition("/")
        return self.snapshot.tree.get(folder, {}).get(name)

    def files_below(self, directory: str, excluded: tuple[Pattern, ...] = ()) -> Iterator[str]:
        """The files in and below a directory (`daily/2026-01-15/`), relative to it, except excluded ones."""
        own = directory[:-1]
        first, end = bisect_left(self._folders, own), bisect_left(self._folders, f"{own}0")  # 0 comes after /
        for folder in self._folders[first:end]:
            for name in self.snapshot.tree[folder] if folder == own or folder.startswith(directory) else ():
                path = f"{folder}/{name}"
                if name[0] != "." and not any(each.covers(path) for each in excluded):
                    yield path[len(directory) :]

    def content_of(self, path: str, excluded: tuple[Pattern, ...] = ()) -> str | None:
        """The content hash of a file or directory; None if it does not exist."""
        if not path.endswith("/"):
            return self.snapshot.content_hash(path)
        if path[:-1] not in self.snapshot.tree:
            return None
        return members_hash(
            {name: self.snapshot.content_hash(path + name) or "" for name in self.files_below(path, excluded)}
        )

    def input_hashes(self, unit: Unit) -> dict[str, str | None]:
        """The content hash of each input as it is now."""
        content = self.snapshot.content_hash
        hashes: dict[str, str | None] = {}
        for name, paths in unit.inputs.items():
            for path in paths:
                if name in unit.stage.gates:
                    hashes[path] = None if self.content_of(path) is None else EXISTS
                elif path[-1] == "/":
                    hashes[path] = self.content_of(path, self.reading(unit, name).excluded)
                else:
                    hashes[path] = content(path)
        return hashes

    def reading(self, unit: Unit, name: str) -> Reading:
        return next(each for each in self.connections.readings[unit.stage.name] if each.name == name)

    def standing(self, unit: Unit) -> Standing:
        if unit.standing is None:
            unit.standing = judge(self.facts(unit), self._now())
        return unit.standing

    def is_fresh(self, unit: Unit) -> bool:
        if unit.standing is None:
            records = self.snapshot.records
            for address in unit.outputs.values():
                if address not in records:
                    return False  # without a record it cannot be fresh
        return self.standing(unit) is FRESH

    def is_behind(self, unit: Unit) -> bool:
        """Whether one of its inputs is not fresh."""
        for path in unit.input_paths():
            maker = self.producer.get(path) or (self._maker_of_directory(path) if self.has_directories else None)
            if maker is not None and maker.standing is not FRESH and maker is not unit and not self.is_fresh(maker):
                return True
        return False

    def facts(self, unit: Unit) -> UnitFacts:
        """Everything that decides the standing of a unit."""
        upstream = []
        for path in unit.input_paths():
            maker = self.producer.get(path) or self._maker_of_directory(path)
            if maker is not None and maker is not unit and (standing := self.standing(maker)) is not FRESH:
                upstream.append(Upstream(path, maker.id, standing))
        quiet_until, newest = self._quiet(unit) if unit.stage.quiet else (None, "")
        outputs = [self._output_facts(unit, name, address) for name, address in unit.outputs.items()]
        failure = self.snapshot.failures.get(unit.id)
        is_known = failure is not None or any(each.record is not None for each in outputs)
        return UnitFacts(
            self.current(unit.stage.name),
            outputs,
            self.input_hashes(unit) if is_known else {},
            unit.missing,
            upstream,
            failure,
            quiet_until,
            newest,
            unit.clash,
        )

    def _maker_of_directory(self, path: str) -> Unit | None:
        """The unit that makes the directory that a path is in."""
        while self.has_directories and "/" in path:
            path = path.rstrip("/").rpartition("/")[0]
            if (maker := self.producer.get(f"{path}/")) is not None:
                return maker
        return None

    def _output_facts(self, unit: Unit, name: str, address: str) -> OutputFacts:
        snapshot = self.snapshot
        record = snapshot.records.get(address)
        kind = unit.stage.outputs[name].kind
        if kind == "file":
            stamp = self.stamp(address)
            digest, size = (None, 0) if stamp is None else (snapshot.content_hash(address), stamp[0])
        elif kind == "directory":
            digest = self.content_of(address)
            size = sum((self.stamp(address + each) or (0,))[0] for each in self.files_below(address)) if digest else 0
        elif record is None or record.members is None:
            digest, size = None, 0
        else:
            there = {
                member: snapshot.content_hash(path)
                for member, path in zip(record.members, member_paths(address, record.members), strict=True)
            }
            digest = None if None in there.values() else members_hash(there)  # type: ignore[arg-type]
            size = unit.stage.min_size  # each member was checked when it was written
        checked = (
            record is None
            or digest is None
            or record.check_hash == self.current(unit.stage.name).check_hash
            or self._is_valid(unit, address, record)
        )
        return OutputFacts(address, record, digest, size, checked, address in snapshot.publishing)

    def _quiet(self, unit: Unit) -> tuple[float | None, str]:
        """Until when the unit waits for its inputs to stay unchanged, and the input that changed last."""
        sources = [path for path in unit.input_paths() if path not in self.producer]
        files = [path for path in sources if not path.endswith("/")]
        files += [path + name for path in sources if path.endswith("/") for name in self.files_below(path)]
        changed = [(stamp[1], path) for path in files if (stamp := self.stamp(path)) is not None]
        if not changed:
            return None, ""
        newest, path = max(changed)
        return newest / 1e9 + unit.stage.quiet, path

    def touch(self, paths: Iterable[str]) -> list[Unit]:
        """Forget, and return, the standings that may differ now that these paths have other content or records."""
        waiting = []
        for path in paths:
            maker = self.producer.get(path) or self._maker_of_directory(path)
            waiting += [*self.readers(path), *([maker] if maker is not None else [])]
        touched: dict[int, Unit] = {}
        while waiting:
            unit = waiting.pop()
            if id(unit) not in touched:
                touched[id(unit)] = unit
                unit.standing = None
                for path in self.paths_of(unit):
                    waiting += self.readers(path)
        return list(touched.values())

    def readers(self, path: str) -> Sequence[Unit]:
        """The units that read a file, by itself or as part of a directory."""
        if not self.has_directories:
            return self.consumers.get(path, ())
        readers = list(self.consumers.get(path, ()))
        above = path.rstrip("/")
        while "/" in above:
            above = above.rpartition("/")[0]
            readers += self.consumers.get(f"{above}/", ())
        return readers
