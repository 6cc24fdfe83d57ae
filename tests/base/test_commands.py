"""What messages tell people to type names the store, unless that is the one that is used anyway."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepwell import Engine, RunCancelled, RunFailed, RunNotFound
from stepwell.base.commands import DEFAULT_STORE, command, either
from stepwell.stores import open_store
from tests.engine.steered import Play


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("url", [DEFAULT_STORE, "sqlite:///./.stepwell/stepwell.db"])
def test_the_default_store_needs_no_name(url: str) -> None:
    store = open_store(url)
    assert command("ls", store.url) == "stepwell ls"
    store.close()


def test_another_store_is_named_as_people_write_it(here: Path) -> None:
    for url in ("sqlite:///orders.db", f"sqlite:///{here}/orders.db?synchronous=normal"):
        store = open_store(url)
        assert command("ls", store.url) == "stepwell ls --store sqlite:///orders.db"
        store.close()
    assert command("ls", "sqlite:////srv/o.db") == "stepwell ls --store sqlite:////srv/o.db"
    assert command("ls", "postgresql://db/orders") == "stepwell ls --store postgresql://db/orders"
    assert command("ls", "https://stepwell.example.com") == "stepwell ls --server https://stepwell.example.com"


@pytest.mark.parametrize("name", ["our orders.db", "100%25.db", "what?.db", "née.db"])
def test_what_is_typed_opens_the_same_file(here: Path, name: str) -> None:
    import shlex

    store = open_store(f"sqlite:///{here}/{name.replace('%', '%25').replace('?', '%3F')}")
    typed = command("ls", store.url)
    store.close()
    assert typed is not None
    again = open_store(shlex.split(typed)[-1])
    assert again.url == store.url
    again.close()
    assert [path.name for path in here.glob("*.db")] == [name]


@pytest.mark.parametrize("url", ["memory://", None])
def test_nothing_can_be_typed_about_the_memory_of_a_process(url: str | None) -> None:
    assert command("ls", url) is None
    assert either("run.retry()", "retry r", url) == "`run.retry()`"


@pytest.mark.parametrize(
    ("url", "retry", "why", "ls"),
    [
        ("memory://", "`run.retry()`", "`run.why()`", "`engine.runs()`"),
        (
            "sqlite:///orders.db",
            "`run.retry()` or `stepwell retry r --store sqlite:///orders.db`",
            "`run.why()` or `stepwell why r --store sqlite:///orders.db`",
            "`stepwell ls --store sqlite:///orders.db`",
        ),
    ],
)
def test_errors_and_explanations_say_it(url: str, retry: str, why: str, ls: str) -> None:
    from stepwell.errors import RunPaused

    play = Play(broken="a")
    with Engine(url) as engine:
        with pytest.raises(RunFailed) as failed:
            engine.run(play.workflow(a=None), run_id="r")
        assert str(failed.value).endswith(f"  completed nodes are kept; {retry} runs only what did not complete")
        assert str(engine.get("r").why()).endswith(f"→ {retry} runs only what did not complete")
        assert engine.get("r").why().to_dict()["advice"] == [f"{retry} runs only what did not complete"]
        with pytest.raises(RunNotFound) as missing:
            engine.get("none")
        assert str(missing.value) == f"no run 'none' in this store; {ls} lists the runs there are"
        assert str(RunPaused("r", "node_failed", store=engine.store.url)).endswith(f"{why} says more")
        assert (
            str(RunCancelled("r", store=engine.store.url)) == f"run r was cancelled; {retry} runs what did not complete"
        )
