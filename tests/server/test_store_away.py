"""While the store cannot be used: clients learn that, and nothing of where it is."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from stepwell import Builder, Engine, errors
from stepwell.core.store import Store
from stepwell.server import readiness
from stepwell.server.serving import Serving
from tests.engine.waiting import eventually
from tests.server.running import ADD, client, running
from tests.server.test_odd_inputs import bodies
from tests.server.test_walk import routes_of

WHERE = "sqlite:////srv/orders/secret-place.db"
FAILURES = (errors.StoreFull, errors.StoreBusy, errors.StoreReadOnly, errors.StoreCorrupt, errors.NotStored)
"""A server whose store was replaced ends instead (tests/cli/test_store_away.py)."""


class Failing:
    """A store that can be made to fail."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.commits: Exception | None = None
        self.reads: Exception | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def commit(self, batch: Any) -> Any:
        if self.commits is not None:
            raise self.commits
        return self._store.commit(batch)

    def read(self, queries: Any) -> Any:
        if self.reads is not None:
            raise self.reads
        return self._store.read(queries)


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Serving, Failing, httpx.Client]]:
    monkeypatch.setattr(readiness, "CHECK_SECONDS", 0.0)
    logging.getLogger("stepwell").setLevel(logging.CRITICAL)
    with running(f"sqlite:///{tmp_path}/away.db") as serving, client(serving) as api:
        watched: Any = serving.service.store
        failing = watched._store = Failing(watched._store)
        assert api.post("/api/v1/workflows", json=ADD).status_code == 201
        yield serving, failing, api
        failing.commits = failing.reads = None
    logging.getLogger("stepwell").setLevel(logging.NOTSET)


def nothing() -> None:
    pass


def check(answer: httpx.Response) -> None:
    assert "secret-place" not in answer.text
    assert "/srv" not in answer.text
    assert answer.status_code not in (500, 501, 502), answer.text


@pytest.mark.parametrize("kind", FAILURES)
def test_no_answer_says_where_the_store_is(
    served: tuple[Serving, Failing, httpx.Client], kind: type[errors.StepwellError]
) -> None:
    serving, failing, api = served
    api.post("/api/v1/workflows/add/runs", json={"input": {"a": 1}, "run_id": "known"})
    graph = api.get("/api/v1/runs/known/graph/frozen").json()
    failing.commits = kind(f"{WHERE}: no space left")
    refused = 507 if kind is errors.StoreFull else 503
    answers = []
    for method, path, body in bodies(graph):
        answers.append(api.request(method, f"/api/v1{path}", json=body))
        check(answers[-1])
    assert [answer.status_code for answer in answers].count(refused) > 5
    failing.reads = kind(f"{WHERE}: cannot be read")
    good = {"{verb}": "retry", "{run_id}": "known", "{name}": "add", "{node}": "x", "{at}": "2", "{other}": "known"}
    for route in routes_of(serving):
        path = route.path
        for name, value in good.items():
            path = path.replace(name, value)
        if not path.endswith("/events"):
            check(api.request(route.method, path))


def test_a_server_is_ready_while_the_store_takes_commits(served: tuple[Serving, Failing, httpx.Client]) -> None:
    _, failing, api = served
    assert api.get("/readyz").status_code == 200
    failing.commits = errors.StoreFull(f"{WHERE}: no space left")
    answer = api.get("/readyz")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
    check(answer)
    assert api.get("/healthz").status_code == 200
    failing.commits = None
    eventually(lambda: api.get("/readyz").status_code == 200)


@pytest.mark.parametrize("worker", [None, {}], ids=["no runner", "runner"])
@pytest.mark.parametrize("name", ["away.db", "away.db-wal"])
def test_while_a_file_of_the_store_is_deleted_nothing_is_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, worker: dict[str, Any] | None, name: str
) -> None:
    monkeypatch.setattr(readiness, "CHECK_SECONDS", 0.0)
    file, aside = tmp_path / name, tmp_path / "aside"
    started: list[str] = []

    def start() -> int:
        run_id = f"r{len(started)}"
        answer = api.post("/api/v1/workflows/add/runs", json={"input": {"a": 1}, "run_id": run_id})
        assert answer.status_code in (200, 201, 503), answer.text
        if answer.status_code < 300:
            started.append(run_id)
        return answer.status_code

    with running(f"sqlite:///{tmp_path}/away.db", worker=worker) as serving, client(serving) as api:
        assert api.post("/api/v1/workflows", json=ADD).status_code == 201
        assert start() == 201
        for _ in range(2):
            os.link(file, aside)
            file.unlink()
            eventually(lambda: start() == 503)
            assert [start() for _ in range(20)] == [503] * 20
            eventually(lambda: api.get("/readyz").status_code == 503)
            assert api.get("/healthz").status_code == 200
            aside.rename(file)
            eventually(lambda: start() in (200, 201))
            eventually(lambda: api.get("/readyz").status_code == 200)
            assert start() == 201
        assert [api.get(f"/api/v1/runs/{run_id}").status_code for run_id in started] == [200] * len(started)
    with Engine(f"sqlite:///{tmp_path}/away.db", runner=None) as engine:
        assert {run.id for run in engine.runs()} >= set(started), "what was acknowledged is lost"


def test_who_asks_whether_it_is_ready_makes_it_commit_once_a_second(
    served: tuple[Serving, Failing, httpx.Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "CHECK_SECONDS", 600.0)
    _, failing, api = served
    assert api.get("/readyz").status_code == 200
    failing.commits = errors.StoreFull("anybody may ask")
    assert [api.get("/readyz").status_code for _ in range(5)] == [200] * 5


def test_every_error_of_the_store_has_a_text_without_its_place() -> None:
    def of(kind: type[Exception]) -> Iterator[type[Exception]]:
        yield kind
        for each in kind.__subclasses__():
            yield from of(each)

    made: list[errors.StepwellError] = [each(WHERE) for each in of(errors.StoreError)]  # type: ignore[misc]
    failure = {"node": "x", "attempt": 1, "error_type": "ValueError", "error_message": "no"}
    made += [
        errors.RunNotFound("r", store=WHERE),
        errors.RunFailed("r", **failure, store=WHERE),  # type: ignore[arg-type]
        errors.RunCancelled("r", store=WHERE),
        errors.RunPaused("r", "node_failed", store=WHERE),
        errors.ServerError(f"{WHERE}: refused"),
        errors.NotAllowed(f"{WHERE}: refused", status=403),
        errors.NotStored(WHERE),
        errors.OtherRoot(WHERE, pipeline="p"),
        errors.ManifestError(WHERE, pipeline="p", path=WHERE),
        errors.DefinitionError("a node is wrong", where=WHERE),
    ]
    for error in made:
        assert "secret-place" in str(error), error
        assert "secret-place" not in error.public_message, error
        assert len(error.public_message) > 10


def test_what_a_run_waits_for_is_told_without_the_place(tmp_path: Path) -> None:
    with Engine(f"sqlite:///{tmp_path}/secret-place.db", runner=None) as engine:
        builder = Builder("waits")
        builder.node("one", job=nothing)
        run = engine.start(builder)
        with pytest.raises(errors.RunStillActive) as active:
            run.wait(timeout=0)
    assert "secret-place" in str(active.value)
    assert "secret-place" not in active.value.public_message
    assert run.id in active.value.public_message
