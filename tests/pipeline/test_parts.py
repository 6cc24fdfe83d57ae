"""A cold build after a few changes looks only at the entities they concern, and comes to the same as a look at everything."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from stepwell import Engine, Pipeline
from stepwell.pipeline.building.verdict import concerned, known_status, list_everything
from tests.pipeline.blog import write

IDS = [f"e{number}" for number in range(12)]


def make(root: Path) -> Pipeline:
    pipeline = Pipeline("parts", root=root)

    @pipeline.stage(input={"text": "in/{id}.txt", "style": "style.txt"}, output="a/{id}.txt", version="1")
    def styled(text: str, style: str) -> str:
        if text == "boom":
            raise ValueError("boom")
        return f"{style}({text.lower()})"

    @pipeline.stage(input={"one": "a/{id}.txt", "other": "other/{id}.txt"}, output="b/{id}.txt", version="1")
    def joined(one: str, other: str) -> str:
        return f"{one}+{other}"

    @pipeline.stage(input="in/{id}.txt", output={"size": "c/{id}.size", "first": "c/{id}.first"}, version="1")
    def measured(text: str) -> dict[str, str]:
        return {"size": str(len(text)), "first": text[:1]}

    return pipeline


def part(root: Path) -> set[str] | None:
    """What a build of a process that has just begun would look at; None: everything."""
    pipeline = make(root)
    return concerned(pipeline, list_everything(pipeline).folders)


@pytest.fixture
def built(root: Path, engine: Engine) -> Path:
    write(root, "style.txt", "plain")
    for each in IDS:
        write(root, f"in/{each}.txt", f"Text {each}")
        write(root, f"other/{each}.txt", f"other {each}")
    assert len(make(root).build(engine=engine).produced) == 3 * len(IDS)
    return root


def test_only_the_entities_of_what_changed_are_looked_at(built: Path, engine: Engine) -> None:
    write(built, "in/e3.txt", "New")
    names = "in/e3.txt style.txt other/e3.txt a/e3.txt b/e3.txt c/e3.size c/e3.first"
    assert part(built) == set(names.split())
    assert set(make(built).build(engine=engine).produced) == {"styled e3", "joined e3", "measured e3"}
    assert (built / "b/e3.txt").read_text() == "plain(new)+other e3"
    assert part(built) == set()
    assert make(built).build(engine=engine).produced == ()


def test_what_concerns_all_entities_is_looked_for_everywhere(built: Path, engine: Engine) -> None:
    write(built, "style.txt", "loud")
    assert part(built) is None
    assert len(make(built).build(engine=engine).produced) == 2 * len(IDS)
    write(built, "in/new.txt", "Added")
    assert part(built) is None
    (built / "in/new.txt").unlink()
    (built / "other/e1.txt").unlink()
    assert part(built) is None


def test_what_is_made_for_all_entities_is_looked_for_everywhere(root: Path, engine: Engine) -> None:
    """Its name has no variables, so the match of its pattern is empty."""

    def make() -> Pipeline:
        pipeline = Pipeline("shared", root=root)

        @pipeline.stage(input="notes.txt", output="final.txt", version="1")
        def one(text: str) -> str:
            return text.upper()

        @pipeline.stage(input={"day": "daily/{date}.txt", "shared": "final.txt"}, output="both/{date}.txt", version="1")
        def two(day: str, shared: str) -> str:
            return day + shared

        return pipeline

    write(root, "notes.txt", "old")
    for each in "abc":
        write(root, f"daily/{each}.txt", each)
    assert len(make().build(engine=engine).produced) == 4
    write(root, "notes.txt", "new")
    assert set(make().build(engine=engine).produced) == {"one", "two a", "two b", "two c"}
    assert (root / "both/a.txt").read_text() == "aNEW"


def test_what_failed_is_not_forgotten(built: Path, engine: Engine) -> None:
    write(built, "in/e1.txt", "boom")
    assert make(built).build(engine=engine).failed == {"styled e1": "boom"}
    write(built, "in/e2.txt", "fine")
    assert part(built) is None
    report = make(built).build(engine=engine)
    assert report.left == {"styled e1": "failed", "joined e1": "blocked"}


@pytest.mark.parametrize("seed", range(2))
def test_it_comes_to_the_same_as_a_look_at_everything(built: Path, engine: Engine, seed: int) -> None:
    chance = random.Random(seed)
    partial = 0
    for _ in range(10):
        for each in chance.sample(IDS, chance.randint(1, 3)):
            match chance.choice(("edit", "other", "touch", "output", "delete", "invalidate")):
                case "edit":
                    write(built, f"in/{each}.txt", f"Text {chance.random()}")
                case "other":
                    write(built, f"other/{each}.txt", chance.choice(("same", "else")))
                case "touch":
                    os.utime(built / f"in/{each}.txt")
                case "output":
                    write(built, f"a/{each}.txt", "somebody's words")
                case "delete":
                    (built / f"b/{each}.txt").unlink(missing_ok=True)
                case "invalidate":
                    make(built).invalidate(f"joined {each}")
        partial += part(built) is not None
        make(built).build(engine=engine)
        for each in IDS:
            text, other = ((built / f"{folder}/{each}.txt").read_text() for folder in ("in", "other"))
            assert (built / f"b/{each}.txt").read_text() == f"plain({text.lower()})+{other}"
            assert (built / f"c/{each}.size").read_text() == str(len(text))
        known = known_status(make(built))
        assert known is not None
        assert {**known, "stages": None} == {**make(built).status().to_dict(), "stages": None}
        assert all(counts["fresh"] == len(IDS) for counts in known["stages"].values())
    assert partial > 2
