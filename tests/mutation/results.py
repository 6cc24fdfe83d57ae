"""What became of each mutant; which are known to be harmless; the report."""

from __future__ import annotations

import enum
import json
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from rich.table import Table

from .mutants import Mutant
from .rooms import room_of
from .trees import ROOT, digest


class Verdict(enum.StrEnum):
    KILLED = "killed"
    SURVIVED = "survived"
    NOT_REACHED = "not reached"
    HARMLESS = "harmless"


class Result(NamedTuple):
    verdict: Verdict
    by: str
    """The test that failed."""
    tests: int
    """How many were run at most,"""
    reaching: int
    """and how many run the line."""


class Results:
    """Kept in a file, a line for each, which holds while nothing has changed that it depends on.

    That a test killed a mutant depends on the module and on the file of the test, that none did on everything: `state`.
    """

    def __init__(self, file: Path, sources: Mapping[str, str], state: str) -> None:
        self._file = file
        self._sources = sources
        self._state = state
        self._last: dict[str, tuple[str, Result]] = {}
        for line in file.read_text("utf-8").splitlines() if file.exists() else ():
            told = json.loads(line)
            result = Result(Verdict(told["verdict"]), told["by"], told["tests"], told["reaching"])
            self._last[told["mutant"]] = (told["holds_for"], result)

    def __contains__(self, mutant: Mutant) -> bool:
        if mutant.id not in self._last:
            return False
        holds_for, result = self._last[mutant.id]
        return holds_for == self._holds_for(mutant, result)

    def __getitem__(self, mutant: Mutant) -> Result:
        return self._last[mutant.id][1]

    def last_verdict(self, mutant: Mutant) -> Verdict | None:
        return self._last[mutant.id][1].verdict if mutant.id in self._last else None

    def add(self, mutant: Mutant, result: Result) -> None:
        holds_for = self._holds_for(mutant, result)
        self._last[mutant.id] = (holds_for, result)
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"mutant": mutant.id, "holds_for": holds_for, **result._asdict()}) + "\n")

    def _holds_for(self, mutant: Mutant, result: Result) -> str:
        killer = ROOT / result.by.split("::")[0]
        if result.verdict is Verdict.KILLED and killer.is_file():
            return digest(self._sources[mutant.module] + killer.read_text("utf-8"))
        return self._state


class Harmless:
    """The mutants that nobody could notice, each with the reason; known by their text, so that lines may move."""

    def __init__(self, file: Path) -> None:
        entries = tomllib.loads(file.read_text("utf-8")).get("harmless", [])
        self._entries = {tuple(entry[name] for name in ("module", "function", "was", "now")) for entry in entries}
        missing = [entry for entry in entries if not entry.get("reason", "").strip()]
        if missing:
            raise SystemExit(f"{file}: an entry without a reason: {missing[0]['module']}: {missing[0]['was']}")

    def knows(self, mutant: Mutant) -> bool:
        return _key(mutant) in self._entries

    def without_a_mutant(self, mutants: Iterable[Mutant]) -> list[str]:
        return sorted(" ".join(entry[:3]) for entry in self._entries - {_key(mutant) for mutant in mutants})


def _key(mutant: Mutant) -> tuple[str, ...]:
    return (mutant.module, mutant.function, mutant.was, mutant.now)


def score(verdicts: Mapping[Mutant, Verdict]) -> float:
    """Percent killed, of those that are not harmless."""
    counts = Counter(verdicts.values())
    judged = len(verdicts) - counts[Verdict.HARMLESS]
    return 100 * counts[Verdict.KILLED] / judged if judged else 100.0


def by_room(verdicts: Mapping[Mutant, Verdict]) -> dict[str, dict[Mutant, Verdict]]:
    rooms: dict[str, dict[Mutant, Verdict]] = {}
    for mutant, verdict in verdicts.items():
        rooms.setdefault(room_of(mutant.module), {})[mutant] = verdict
    return rooms


def table_of_rooms(verdicts: Mapping[Mutant, Verdict]) -> Table:
    table = Table("room", *(str(verdict) for verdict in Verdict), "%")
    for room, of_room in by_room(verdicts).items():
        counts = Counter(of_room.values())
        table.add_row(room, *(str(counts[verdict]) for verdict in Verdict), f"{score(of_room):.0f}")
    return table


def summary(verdicts: Mapping[Mutant, Verdict]) -> str:
    counts = Counter(verdicts.values())
    told = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict)
    return f"{len(verdicts)} mutants: {told}; {score(verdicts):.1f} % killed"


def write_report(file: Path, verdicts: Mapping[Mutant, Verdict], results: Results, sources: Mapping[str, str]) -> None:
    parts = ["# Mutants that no test has noticed", summary(verdicts)]
    for mutant, verdict in sorted(verdicts.items(), key=lambda each: (each[0].module, each[0].line)):
        if verdict in (Verdict.SURVIVED, Verdict.NOT_REACHED):
            parts.append(_told(mutant, results[mutant], sources[mutant.module]))
    parts.append("# What killed the others")
    killed = [mutant for mutant, verdict in verdicts.items() if verdict is Verdict.KILLED]
    parts += [f"- {mutant.module}:{mutant.line} by {results[mutant].by}" for mutant in killed]
    file.write_text("\n\n".join(parts) + "\n", "utf-8")


def _told(mutant: Mutant, result: Result, source: str) -> str:
    """With the entry for `harmless.toml` that it would get."""
    entry = {"module": mutant.module, "function": mutant.function, "was": mutant.was, "now": mutant.now, "reason": ""}
    lines = "\n".join(f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in entry.items())
    return (
        f"## {mutant.module}:{mutant.line} {mutant.function}\n{result.verdict}, {result.tests} of {result.reaching} tests\n\n"
        f"```diff\n{mutant.diff(source)}\n```\n\n```toml\n[[harmless]]\n{lines}\n```"
    )
