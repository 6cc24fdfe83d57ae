"""Whatever people do to the files, a build leaves what a naive model says, and runs what the dry run listed."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stepwell import Engine
from tests.pipeline.blog import Clock, Ledger, make_blog, statuses, write

DATES = ("d1", "d2", "d3")
FILES = ("a.txt", "b.txt")
TEXTS = ("Hello", "hello", "World", "boom")

actions = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(DATES), st.sampled_from(FILES), st.sampled_from(TEXTS)),
    st.tuples(st.just("remove"), st.sampled_from(DATES), st.sampled_from(FILES)),
    st.tuples(
        st.just("delete output"),
        st.sampled_from(("daily/{}/summary.txt", "final/{}-digest.md")),
        st.sampled_from(DATES),
    ),
    st.tuples(
        st.just("edit output"), st.sampled_from(("daily/{}/summary.txt", "final/{}-digest.md")), st.sampled_from(DATES)
    ),
    st.tuples(st.just("invalidate"), st.sampled_from(DATES)),
    st.tuples(st.just("wait")),
    st.tuples(st.just("build")),
    st.tuples(st.just("clean")),
)


class Naive:
    """What must be there after a build in which nothing is in back-off any more."""

    def __init__(self) -> None:
        self.sources: dict[str, dict[str, str]] = {}

    def expected(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for date, files in self.sources.items():
            texts = [files[name] for name in sorted(files)]
            if texts and "boom" not in texts:
                found[f"daily/{date}/summary.txt"] = "+".join(texts).lower()
                found[f"final/{date}-digest.md"] = f"# {date}\n" + found[f"daily/{date}/summary.txt"]
        return found

    def failing(self) -> set[str]:
        return {date for date, files in self.sources.items() if "boom" in files.values()}


@pytest.fixture(scope="module")
def shared_engine() -> object:
    with tempfile.TemporaryDirectory() as folder, Engine(f"sqlite:///{folder}/engine.db") as engine:
        yield engine


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(actions, min_size=1, max_size=12))
def test_any_history_ends_as_the_naive_model_says(shared_engine: Engine, history: list[tuple[str, ...]]) -> None:
    root = Path(tempfile.mkdtemp())
    try:
        _play(root, shared_engine, history)
    finally:
        shutil.rmtree(root)


def _play(root: Path, engine: Engine, history: list[tuple[str, ...]]) -> None:
    clock, ledger, naive = Clock(), Ledger(), Naive()
    for action, *rest in [*history, ("wait",), ("build",), ("build",)]:
        if action == "write":
            date, name, text = rest
            naive.sources.setdefault(date, {})[name] = text
            write(root, f"daily/{date}/{name}", text)
        elif action == "remove":
            date, name = rest
            if naive.sources.get(date, {}).pop(name, None) is not None:
                (root / f"daily/{date}/{name}").unlink()
        elif action == "delete output":
            (root / rest[0].format(rest[1])).unlink(missing_ok=True)
        elif action == "edit output":
            file = root / rest[0].format(rest[1])
            if file.exists():
                file.write_text("somebody's words")
        elif action == "wait":
            clock.now += 100_000
        elif action == "invalidate":
            blog = make_blog(root, ledger, clock=clock)
            if f"digest {rest[0]}" in statuses(blog):
                blog.invalidate(f"digest {rest[0]}")
                asked = make_blog(root, clock=clock).why(f"final/{rest[0]}-digest.md")
                assert asked.record is None or asked.standing.status != "fresh"
        elif action == "clean":
            make_blog(root, ledger, clock=clock).clean()
        else:
            _build(root, engine, clock, ledger)
    wanted = naive.expected()
    for path, text in wanted.items():
        assert (root / path).read_text() == text, path
    found = statuses(make_blog(root, clock=clock))
    assert {unit.split()[1] for unit, status in found.items() if status == "failed"} == naive.failing()
    good = [date for date in sorted(naive.sources) if f"final/{date}-digest.md" in wanted]
    assert {f"digest {date}" for date in good} <= {unit for unit, status in found.items() if status == "fresh"}
    if good and not naive.failing():
        assert (root / "index.html").read_text() == "\n".join(f"{date} # {date}" for date in good)
    assert ledger.take() == []  # the last build had nothing to do


def _build(root: Path, engine: Engine, clock: Clock, ledger: Ledger) -> None:
    ledger.take()
    blog = make_blog(root, ledger, clock=clock)
    plan = blog.plan()
    will = {f"{each.stage} {each.entity}".strip() for each in plan.will_run}
    may = {f"{each.stage} {each.entity}".strip() for each in plan.may_run}
    blog.build(engine=engine)
    ran = ledger.take()
    assert len(ran) == len(set(ran)), "twice"
    assert will <= set(ran) <= will | may
    again = make_blog(root, ledger, clock=clock)
    again.build(engine=engine)
    assert ledger.take() == [], "a second build had something to do"
