"""The pipeline that most tests use: two stages an entity, and one that collects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stepwell import Pipeline


class Ledger:
    """What ran, in order: outside of everything that is tested."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def take(self) -> list[str]:
        ran, self.ran = sorted(self.ran), []
        return ran


class Clock:
    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def write(root: Path, path: str, content: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content, "utf-8")


def make_blog(root: Path, ledger: Ledger | None = None, **options: Any) -> Pipeline:
    log = ledger or Ledger()
    blog = Pipeline("auto-blog", root=root, **options)

    @blog.stage(input="daily/{date}/*.txt", output="daily/{date}/summary.txt", min_size=3, version="1")
    def summary(entity, files: list[str]):
        log.ran.append(f"summary {entity}")
        if any("boom" in text for text in files):
            raise ValueError("boom")
        return "+".join(files).lower()

    @blog.stage(input="daily/{date}/summary.txt", output="final/{date}-digest.md", version="1")
    def digest(entity, summary: str):
        log.ran.append(f"digest {entity}")
        return f"# {entity.date}\n{summary}"

    @blog.stage(input="final/{date}-digest.md", output="index.html", collect="date", version="1")
    def index(entities, digests: list[str]):
        log.ran.append("index")
        return "\n".join(f"{entity.id} {text.splitlines()[0]}" for entity, text in zip(entities, digests, strict=True))

    return blog


def statuses(pipeline: Pipeline) -> dict[str, str]:
    """The status of every stage of every entity, and of orphans by path."""
    view = pipeline.view()
    return {f"{each.stage} {each.entity}".strip(): each.standing.status for each in view.states()} | {
        each.outputs[0]: each.standing.status for each in view.orphans()
    }


def causes(pipeline: Pipeline, state: str) -> list[str]:
    return [cause.code for cause in pipeline.why(state).standing.causes]
