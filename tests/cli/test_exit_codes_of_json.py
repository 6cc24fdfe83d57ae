"""`--json` changes what is printed and never the exit code. It prints the record that `answers` describes, or nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import TypeAdapter
from typer.main import get_command

from stepwell.answers import (
    attempts,
    audit_log,
    failures,
    fleet,
    graphs,
    nodes,
    pipelines,
    reports,
    runs,
    triggers,
    workflows,
)
from stepwell.cli.app import app
from tests.cli.conftest import Shop

RECORDS: dict[str, Any] = {
    "ls": list[runs.RunRecord] | runs.RunCountsRecord,
    "show": runs.RunReport | nodes.NodeDetail | workflows.DocumentRecord,
    "why": reports.WhyDetail,
    "audit": reports.AuditRecord,
    "audit-log": list[audit_log.AuditEntryRecord],
    "failures": failures.FailuresRecord,
    "attempts": attempts.AttemptTable,
    "logs": list[nodes.LineRecord],
    "checkpoints": list[reports.LabelRecord] | reports.CheckpointRecord,
    "diff": reports.ComparisonRecord,
    "replay": reports.ReplayRecord,
    "graph": graphs.GraphRecord,
    "check": list[workflows.CheckedFile],
    "save": list[workflows.SavedRecord],
    "workflows": list[workflows.WorkflowRecord],
    "workflow": workflows.WorkflowDetail,
    "handlers": list[workflows.HandlerRecord] | workflows.HandlerRecord,
    "gc": runs.DeletedRuns,
    "version": dict[str, str],
    "workers": list[fleet.WorkerRecord],
    **dict.fromkeys(("retry", "reattempt", "fork", "pause", "resume", "cancel"), runs.SteeredRun),
    "bulk": runs.BulkRecord,
    "copy": runs.CopyRecord,
    "trigger ls": list[triggers.TriggerRecord],
    "trigger show": triggers.TriggerDetail,
    "trigger backfill": triggers.BackfillRecord,
    "token create": fleet.NewToken,
    "token ls": list[fleet.TokenRecord],
    "pipeline status": pipelines.PipelineStatusRecord,
    "pipeline why": pipelines.StateExplanation,
    "pipeline build": pipelines.BuildRecord | pipelines.PlanRecord,
    "pipeline scan": pipelines.BuildRecord | pipelines.PlanRecord,
    "pipeline failures": dict[str, pipelines.StageFailureRecord],
    "pipeline graph": list[pipelines.LinkRecord],
}
"""What each command prints with `--json`."""

CASES = {
    "ls": 0,
    "ls --status nonsense": 2,
    "ls --count status": 0,
    "ls --count day --search SHOP": 0,
    "ls --count nonsense": 2,
    "ls --fork-of nowhere": 3,
    "show again": 0,
    "show again flaky": 0,
    "show shop:failed validate": 0,
    "show good.json": 0,
    "show nowhere": 3,
    "why shop:failed": 0,
    "why shop:failed validate": 0,
    "why nowhere": 3,
    "audit-log": 0,
    "audit-log again": 0,
    "audit-log nowhere": 0,
    "audit again": 0,
    "audit nowhere": 3,
    "failures shop:failed": 0,
    "failures nowhere": 3,
    "attempts again": 0,
    "attempts nowhere": 3,
    "logs again": 0,
    "logs nowhere": 3,
    "logs again --attempt 0": 2,
    "checkpoints fan-12": 0,
    "checkpoints fan-12 3": 0,
    "checkpoints nowhere": 3,
    "diff again again": 0,
    "diff fan-12 fan-100": 1,
    "replay fan-12": 1,
    "replay again": 1,
    "graph fan-12": 0,
    "graph nowhere": 3,
    "check good.json": 0,
    "check broken.json": 2,
    "save broken.json": 2,
    "save good.json": 0,
    "workflows": 0,
    "workflow d": 0,
    "workflow nowhere": 2,
    "handlers": 0,
    "handlers compute": 0,
    "handlers nowhere": 2,
    "gc --older-than 9w": 0,
    "gc --older-than soon": 2,
    "version": 0,
    "workers": 0,
    "workers --store sqlite:///nowhere.db": 4,
    "retry fan-100 --dry-run": 0,
    "retry nowhere --dry-run": 3,
    "reattempt again nowhere --dry-run": 2,
    "fork fan-12 --dry-run": 0,
    "fork nowhere --dry-run": 3,
    "pause again --dry-run": 6,
    "resume again --dry-run": 6,
    "cancel again --dry-run": 6,
    "bulk retry --dry-run": 0,
    "bulk pause --workflow nowhere --yes": 0,
    "bulk retry --status failed": 2,
    "bulk nonsense --dry-run": 2,
    "copy sqlite:///nowhere.db sqlite:///there.db": 4,
    "copy sqlite:///.stepwell/stepwell.db sqlite:///there.db": 0,
    "trigger ls": 0,
    "trigger show nightly": 0,
    "trigger backfill nightly 2026-03-01 2026-03-02 --dry-run": 0,
    "trigger show nowhere": 2,
    "trigger backfill nowhere 2026-03-01 2026-03-02": 2,
    "token create --scope nonsense": 2,
    "token create --days 1": 0,
    "token ls": 0,
    "pipeline status": 2,
    "pipeline status -p nowhere.json": 2,
    "pipeline status -p flow:p": 0,
    "pipeline why -p flow:p in/a.txt": 0,
    "pipeline why -p flow:p in/nowhere.txt": 2,
    "pipeline build -p flow:p --force": 1,
    "pipeline build -p flow:p --dry-run": 0,
    "pipeline scan -p flow:p": 0,
    "pipeline scan -p flow:p --dry-run": 0,
    "pipeline invalidate -p flow:p in/nowhere.txt": 2,
    "pipeline accept -p flow:p in/nowhere.txt": 2,
    "pipeline retry -p flow:p": 0,
    "pipeline failures -p flow:p": 0,
    "pipeline clean -p flow:p": 0,
    "pipeline graph -p flow:p": 0,
}

GOOD = '{"name": "d", "nodes": [{"id": "a", "handler": "compute", "config": {"expression": "1"}}]}'
BROKEN = '{"name": "d", "nodes": [{"id": "a", "handler": "none"}]}'
PIPELINE = """
from stepwell import Pipeline
p = Pipeline("p", root="root")

@p.stage(input="in/{x}.txt", output="out/{x}.txt")
def up(text: str) -> str:
    return text.upper() if text != "bad" else 1 / 0
"""


@pytest.fixture(scope="module")
def full_shop(old_shop: Shop) -> Shop:
    old_shop.write("good.json", GOOD)
    old_shop.write("broken.json", BROKEN)
    old_shop.write("flow.py", PIPELINE)
    inputs = old_shop.folder / "root/in"
    inputs.mkdir(parents=True)
    for name in ("a", "bad"):
        (inputs / f"{name}.txt").write_text(name)
    old_shop("trigger", "add", "nightly", "shop:Again", "--cron", "30 2 * * *")
    return old_shop


@pytest.mark.parametrize(("words", "code"), CASES.items())
def test_a_command_ends_alike_with_json(full_shop: Shop, words: str, code: int) -> None:
    full_shop(*words.split(), code=code)
    told = full_shop(*words.split(), "--json", code=code)
    if code == 0:
        assert told.out
    assert told.out or told.err
    if told.out:
        record = next((record for name, record in RECORDS.items() if f"{words} ".startswith(f"{name} ")), Any)
        assert_fits(record, told.out)
        assert record is not Any or words.startswith("pipeline ")


def assert_fits(record: Any, text: str) -> None:
    """It has every key that the record has, and no other."""
    adapter = TypeAdapter(record)
    assert adapter.dump_python(adapter.validate_json(text), mode="json") == json.loads(text)


def test_every_command_with_json_is_among_these() -> None:
    with_json = {name for name, command in commands(get_command(app)) if "--json" in options(command)}
    assert {name for name in with_json if not any(f"{case} ".startswith(f"{name} ") for case in CASES)} == set()


def commands(group: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    for word, command in getattr(group, "commands", {}).items():
        yield from commands(command, f"{name} {word}".strip())
    if not hasattr(group, "commands"):
        yield name, group


def options(command: Any) -> set[str]:
    return {option for parameter in command.params for option in parameter.opts}
