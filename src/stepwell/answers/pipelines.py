"""Pipelines: their states and why these have their status, plans, scans and failures."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from .staleness import CauseCode, Status


class PipelineRecord(TypedDict):
    """A pipeline that the server was started with."""

    name: str
    """Its name."""
    states: str
    """Where its states are."""
    stages: list[str]
    """Its stages."""


class StalenessCause(TypedDict):
    """Why a state is stale, or waits."""

    cause: CauseCode
    """What kind of cause it is."""
    text: str
    """The same for people."""
    subject: str
    """The path or the function that it is about; empty if it is about none."""


class StateRecord(TypedDict):
    """The states that one stage makes for one entity."""

    stage: str
    """The stage."""
    entity: str
    """The entity; empty of a stage that makes one state for all."""
    outputs: list[str]
    """The paths of the states."""
    status: Status
    """Their status."""
    causes: list[StalenessCause]
    """Why they have it."""
    due_at: str | None
    """When time alone will change it."""


class ProblemOfPath(TypedDict):
    """A file that no stage can read or write."""

    path: str
    """Its path."""
    problem: str
    """What is wrong with it."""


class PipelineStatusRecord(TypedDict):
    """How many states have which status, and all that are not fresh."""

    pipeline: str
    """The name of the pipeline."""
    entities: int
    """How many entities it has."""
    fresh: int
    """How many states are up to date."""
    stale: int
    """How many would be made by a scan."""
    failed: int
    """How many failed."""
    blocked: int
    """How many wait for one that failed."""
    waiting: int
    """How many wait for an input."""
    unrecorded: int
    """How many no stage has made."""
    orphan: int
    """How many have no source any more."""
    stages: dict[str, dict[Status, int]]
    """The same numbers by stage; those that are 0 may be left out."""
    states: list[StateRecord]
    """All that are not fresh."""
    problems: list[ProblemOfPath]
    """Files that are left out."""


class ScanProgress(TypedDict):
    """Nodes of the runs of a scan."""

    done: int
    """How many have completed."""
    failed: int
    """How many have failed."""
    running: int
    """How many are running."""
    ready: int
    """How many wait for a worker."""


class BuildRecord(TypedDict):
    """What a scan did."""

    pipeline: str
    """The name of the pipeline."""
    produced: list[str]
    """What was made: stage and entity, such as `summary 2026-01-15`."""
    unchanged: list[str]
    """Those of them whose content is as before: nothing was made of them."""
    failed: dict[str, str]
    """What failed, and triggers that could not be fired (`trigger NAME`), and why."""
    left: dict[str, Status | Literal["paused"]]
    """What is still not fresh, and its status; `paused` if its run is."""
    runs: list[str]
    """The ids of the runs."""
    seconds: float
    """How long it took."""


class ScanRecord(TypedDict):
    """A scan that was requested of this server."""

    id: str
    """Its id."""
    running: bool
    """Whether it has not ended."""
    progress: ScanProgress | None
    """How far it was when it last looked; null before it looked."""
    report: BuildRecord | None
    """What it did, once it has ended; null if it ended with an error."""
    error: str | None
    """What ended it before it was done."""


class PipelineDetail(PipelineStatusRecord):
    """The status of a pipeline, and its latest scan."""

    scan: ScanRecord | None
    """The scan that is running, or was the last; null if none was requested of this server."""


class PlanRecord(TypedDict):
    """What a scan would do."""

    will_run: list[StateRecord]
    """Stale, with every input up to date."""
    may_run: list[StateRecord]
    """Below these: made if what is above them comes out different."""
    may_appear: list[str]
    """Stages that may get new entities."""


class StateOrigin(TypedDict):
    """How a state came to be, as its manifest has it."""

    code_hash: str
    """The hash of the code of its stage."""
    config_hash: str
    """The hash of the config of its stage."""
    content_hash: str
    """The hash of its content."""
    inputs_hash: str
    """The hash of what it was made from."""
    produced_at: str
    """When it was made."""
    produced_by: str
    """The pipeline and the stage: `auto-blog#summary`."""
    entity: str
    """Its entity."""
    inputs: dict[str, str]
    """What it was made from: hashes by path; those of more than 1,000 are left out."""
    members: dict[str, str] | None
    """Of a directory, or of several files: their hashes by path."""
    check_hash: str
    """The hash of the function that found it valid; empty if there is none."""
    stale: str
    """Why it was invalidated; empty if it was not."""


class StateExplanation(TypedDict):
    """Why a state has its status."""

    state: str
    """Its path."""
    stage: str | None
    """The stage that makes it; null of a source."""
    entity: str
    """Its entity."""
    status: Status
    """Its status."""
    causes: list[StalenessCause]
    """Why it has it."""
    due_at: str | None
    """When time alone will change it."""
    record: StateOrigin | None
    """How it came to be; null if no stage made it."""
    changed_code: list[str]
    """Functions, classes and constants that have changed since."""
    not_followed: dict[str, str]
    """Code whose changes are not noticed, and where it is named."""
    upstream: list[StateRecord]
    """What it was made from and is not fresh."""


class StageRecord(TypedDict):
    """A stage of a pipeline."""

    name: str
    """Its name."""
    inputs: dict[str, str]
    """The patterns that it reads, by name."""
    outputs: dict[str, str]
    """The patterns that it writes, by name."""
    after: list[str]
    """The stages whose outputs it reads."""


class StagesRecord(TypedDict):
    """The stages of a pipeline, each after those that it reads."""

    pipeline: str
    """The name of the pipeline."""
    stages: list[StageRecord]
    """Its stages."""


class EntityRecord(TypedDict):
    """An entity of a pipeline."""

    entity: str
    """Its name."""
    counts: dict[Status, int]
    """How many of its states have which status."""


class ChangedStates(TypedDict):
    """What a request changed."""

    changed: list[str]
    """The states, or stages and entities, that it changed or would change."""


class StageFailureRecord(TypedDict):
    """What went wrong with one stage of one entity, and when it is tried again."""

    error: str
    """The message of the error."""
    error_type: str
    """Its class."""
    attempts: int
    """How often it has failed in a row."""
    first_failed_at: str
    """When it failed first."""
    last_failed_at: str
    """When it failed last."""
    next_retry_at: str | None
    """When it is tried again; null: not before a retry is requested."""
    identity: str
    """A hash of the code, config and inputs that it failed with: once they change, it is tried again."""
    run_id: str
    """The run in which it failed; empty if it is not known."""


class StageFailures(TypedDict):
    """What failed."""

    failures: dict[str, StageFailureRecord]
    """By stage and entity, such as `summary 2026-01-15`."""


class LinkRecord(TypedDict):
    """A stage or a trigger that waits for what a stage writes."""

    writer: str
    """The stage that writes, as `pipeline#stage`."""
    output: str
    """The pattern that it writes."""
    reader: str
    """The stage that reads, as `pipeline#stage`, or the trigger, as `pipeline#trigger name`."""
    input: str
    """The pattern that it reads."""


class LinksRecord(TypedDict):
    """Which stages read what others write."""

    links: list[LinkRecord]
    """Each pair of stages."""
    mermaid: str
    """The same as a flowchart."""
