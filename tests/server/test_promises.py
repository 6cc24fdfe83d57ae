"""What a server promises, entry by entry: verbs in each status, what pages may send, lives of tokens, lost answers, zones."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from types import NoneType
from typing import Any, get_args

import httpx
import pytest

from stepwell import Builder, Client, Document, Engine, RunNotFound, StepwellError, Trigger
from stepwell.base.clock import SECOND, ManualClock
from stepwell.client.transport import error_of
from stepwell.core.model import RUN_VERBS, RunStatus
from stepwell.core.store.memory import MemoryStore
from stepwell.errors import InputError, NotAllowed, PipelineBusy, RunBusy, RunConflict, ServerError, StoreError
from stepwell.server.access import callers
from stepwell.server.access.guard import HEADERS
from stepwell.server.access.tokens import create_token
from stepwell.server.api.steering import Verb
from stepwell.server.serving import Serving
from tests.server.running import ADD, SECONDS, client, running, serving_of

RUNS = "/api/v1/runs"
FAILING = {"name": "failing", "nodes": [{"id": "x", "handler": "transform", "config": {"template": "{{ input.a.b }}"}}]}
HOURS = 3_600 * SECOND

begun, go_on = threading.Semaphore(0), threading.Event()


def wait() -> None:
    begun.release()
    go_on.wait(SECONDS)


# Verbs


@pytest.fixture(scope="module")
def statuses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[httpx.Client, Engine]]:
    """A run in each status, named like it, and a direct engine of the same store."""
    url = f"sqlite:///{tmp_path_factory.mktemp('verbs')}/verbs.db"
    with Engine(url) as engine:
        engine.run(Document(ADD), input={"a": 1}, run_id="COMPLETED")
        engine.run(Document(FAILING), input={"a": {}}, run_id="FAILED", check=False)
        builder = Builder("waits")
        builder.node("first", job=wait)
        with Engine(url, runner=None) as starter:
            starter.start(builder, run_id="PENDING")
            starter.start(builder, run_id="PAUSED").pause()
            starter.start(builder, run_id="CANCELLED").cancel()
        for run_id in ("RUNNING", "CANCELLING"):
            engine.start(builder, run_id=run_id)
            assert begun.acquire(timeout=SECONDS)
        engine.get("CANCELLING").cancel(grace_seconds=3_600)
        with running(url) as serving, client(serving) as api, Engine(url, runner=None) as direct:
            found = {status: direct.get(status).status for status in RunStatus}
            assert found == {status: status for status in RunStatus}
            yield api, direct
        go_on.set()


@pytest.mark.parametrize("verb", get_args(Verb))
@pytest.mark.parametrize("status", list(RunStatus))
def test_each_verb_does_in_each_status_what_an_engine_does(
    statuses: tuple[httpx.Client, Engine], verb: Verb, status: RunStatus
) -> None:
    api, direct = statuses
    run = direct.get(status)
    node = run.nodes()[0].id
    given = (node,) if verb == "reattempt" else ()
    path = f"{RUNS}/{status}/{'/'.join(('nodes', node, verb)) if given else verb}"
    answer = api.post(path, json={"dry_run": True})
    refused, expected = None, []
    try:
        expected = [(each.id, each.becomes) for each in getattr(run, verb)(*given, dry_run=True)]
    except RunConflict as error:
        refused = error.public_message
    told = answer.json()
    assert answer.status_code == (200 if refused is None else 409), answer.text
    assert told.get("detail") == refused
    assert [(each["id"], each["becomes"]) for each in told.get("nodes", ())] == expected
    # The same of many: what the table of verbs leaves out is refused by an engine, or changes nothing.
    body: dict[str, Any] = {"filter": {"prefix": status, "status": [status]}, "dry_run": True}
    many = api.post(f"/api/v1/bulk/{verb}", json=body | ({"node": node} if given else {}))
    if status not in RUN_VERBS[verb].allowed:
        assert many.status_code == 422
        assert expected == []
    else:
        assert many.status_code == 200, many.text
        (one,) = many.json()["runs"]
        assert (one["outcome"], one["detail"]) == (("done", None) if refused is None else ("refused", refused))
        assert one["nodes"] == (len(expected) if refused is None else None)


# Browsers

OWN, OTHER = "own", "http://evil.example.com"
SITES = (None, "same-origin", "none", "same-site", "cross-site")
MODES = (None, "navigate", "cors", "no-cors", "same-origin", "websocket")


@pytest.fixture(scope="module")
def open_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with running(f"sqlite:///{tmp_path_factory.mktemp('open')}/open.db") as serving:
        yield serving


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE"])
def test_what_pages_may_send(open_server: Serving, method: str) -> None:
    with client(open_server) as api:
        for site in SITES:
            for mode in MODES:
                for origin in (None, OWN, OTHER, "null", ""):
                    headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Origin": origin}
                    headers["Origin"] = open_server.url if origin is OWN else origin
                    sent = {name: value for name, value in headers.items() if value is not None}
                    status = api.request(method, f"{RUNS}/nobody", headers=sent).status_code
                    is_of_page = site in ("same-site", "cross-site")
                    opens = mode == "navigate" and method in ("GET", "HEAD", "OPTIONS")
                    refused = origin not in (None, OWN) or (is_of_page and not opens)
                    assert (status == 403) is refused, (method, sent, status)


def test_every_answer_has_every_header_for_browsers(open_server: Serving) -> None:
    expected = {
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
        "referrer-policy": "no-referrer",
        "cross-origin-resource-policy": "same-origin",
        "cache-control": "no-store",
    }
    assert {name.lower() for name in HEADERS} == expected.keys()
    with client(open_server) as api:
        refused = {"Origin": OTHER}
        for answer in (
            api.get("/healthz"),
            api.get(RUNS),
            api.get(f"{RUNS}/nobody"),
            api.get("/api/v1/nothing"),
            api.get(RUNS, headers=refused),
            api.get(RUNS, headers={"Host": "evil"}),
            api.get(RUNS, headers={"Authorization": "Bearer x"}),
            api.post("/api/v1/read", content=b"{"),
            api.put(RUNS),
            api.post("/hooks/nobody"),
        ):
            assert {name: answer.headers.get(name) for name in expected} == expected, answer.url


# Tokens and sessions


@contextmanager
def timed(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Serving, ManualClock]]:
    """A server whose clock only moves when it is told to, and which remembers nobody."""
    monkeypatch.setattr(callers, "REMEMBERED_SECONDS", 0.0)
    clock = ManualClock()
    with serving_of(MemoryStore(clock)) as serving:
        yield serving, clock


def test_a_token_is_valid_until_its_end_and_a_session_not_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    with timed(monkeypatch) as (serving, clock):
        store = serving.service.store
        long, _ = create_token(store, ["read"], days=30)
        short, _ = create_token(store, ["read"], days=0.25)
        with client(serving, long) as by_long, client(serving, short) as by_short:
            of_long, of_short = by_long.post("/api/v1/session"), by_short.post("/api/v1/session")
        assert "Max-Age=43200" in of_long.headers["set-cookie"]
        assert "Max-Age=21600" in of_short.headers["set-cookie"]

        def valid() -> list[bool]:
            asked = []
            for cookies in (of_long.cookies, of_short.cookies):
                with client(serving, cookies=dict(cookies)) as browser:
                    asked.append(browser.get(RUNS).status_code == 200)
            for token in (long, short):
                with client(serving, token) as api:
                    asked.append(api.get(RUNS).status_code == 200)
            return asked

        assert valid() == [True, True, True, True]
        clock.advance(6 * 3_600 - 1)
        assert valid() == [True, True, True, True]
        clock.advance(1)  # the end itself is outside
        assert valid() == [True, False, True, False]
        clock.advance(6 * 3_600 - 1)
        assert valid() == [True, False, True, False]
        clock.advance(1)
        assert valid() == [False, False, True, False]
        clock.advance((30 - 0.5) * 86_400)
        assert valid() == [False, False, False, False]


# Lost answers


@contextmanager
def losing(remote: Client, *, times: int = 1, status: int | None = None) -> Iterator[list[str]]:
    """The first requests that could change something are done, and their answers lost; or get this status and are not."""
    http = remote.parts.transport._client
    request, sent = http.request, []

    def asked(method: str, url: str, **more: Any) -> Any:
        if method == "GET" or url.endswith("/read"):
            return request(method, url, **more)
        sent.append(f"{method} {url.removeprefix('/api/v1')}")
        if len(sent) > times:
            return request(method, url, **more)
        if status is not None:
            return httpx.Response(status, json={"detail": "not now"}, request=httpx.Request(method, url))
        request(method, url, **more)
        raise httpx.ReadError("the answer was lost")

    http.request = asked
    try:
        yield sent
    finally:
        http.request = request


DAY = datetime(2026, 1, 1, tzinfo=UTC).timestamp() * SECOND
CHANGES: dict[str, tuple[Callable[[Client], Any], bool]] = {
    "start": (lambda remote: remote.start(Document(ADD), input={"a": 1}), True),
    "start by name": (lambda remote: remote.start("add", input={"a": 1}, idempotency_key="again"), True),
    "save": (lambda remote: remote.save(Document(ADD)), True),
    "delete": (lambda remote: remote.get("deleted").delete(), True),
    "trigger.add": (lambda remote: remote.triggers.add(Trigger("new", "add", every="1h", input={"a": 1})), True),
    "trigger.pause": (lambda remote: remote.triggers.pause("daily"), True),
    "trigger.resume": (lambda remote: remote.triggers.resume("daily"), True),
    "trigger.backfill": (lambda remote: remote.triggers.backfill("daily", int(DAY), int(DAY + 24 * HOURS)), True),
    "trigger.fire with a key": (lambda remote: remote.triggers.fire("daily", key="once"), True),
    "trigger.remove": (lambda remote: remote.triggers.remove("gone"), True),
    "trigger.fire": (lambda remote: remote.triggers.fire("daily"), True),
    "pause": (lambda remote: remote.get("paused").pause(), False),
    "resume": (lambda remote: remote.get("resumed").resume(), False),
    "cancel": (lambda remote: remote.get("cancelled").cancel(), False),
    "freeze": (lambda remote: remote.get("frozen").freeze(), False),
    "fork": (lambda remote: remote.get("forked").fork(at="y"), True),
    "fork with a key": (lambda remote: remote.get("forked").fork(at="y", idempotency_key="fork"), True),
}


@pytest.mark.parametrize("status", [None, 503])
def test_only_what_can_be_repeated_is_asked_again_by_itself(tmp_path: Path, status: int | None) -> None:
    with running(f"sqlite:///{tmp_path}/again.db") as serving, Client(serving.url) as remote:
        remote.save(Document(ADD))
        for run_id in ("deleted", "paused", "resumed", "cancelled", "frozen", "forked"):
            run = remote.start(Document(ADD), input={"a": 1}, run_id=run_id)
            if run_id in ("deleted", "forked"):
                run.cancel()
            if run_id == "resumed":
                run.pause()
        for trigger in ("daily", "gone"):
            remote.triggers.add(Trigger(trigger, "add", cron="0 6 * * *", input={"a": 4}))
        for name, (ask, repeatable) in CHANGES.items():
            refused = None
            with losing(remote, status=status) as sent:
                try:
                    ask(remote)
                except StepwellError as error:
                    refused = error
            assert len(sent) == 1 + repeatable, name
            assert len(set(sent)) == 1, name
            expected = NoneType if repeatable else ServerError if status is None else StoreError
            assert type(refused) is expected, (name, refused)


def test_a_server_that_stays_busy_is_asked_five_times(open_server: Serving) -> None:
    with Client(open_server.url) as remote, losing(remote, times=100, status=503) as sent:
        with pytest.raises(StoreError, match="not now"):
            remote.start(Document(ADD), input={"a": 1})
        assert len(sent) == 5


@pytest.mark.parametrize(
    ("status", "problem", "kind", "facts"),
    [
        (401, {}, NotAllowed, {"status": 401}),
        (403, {"error": "RunNotFound"}, NotAllowed, {"status": 403}),
        (404, {"error": "RunNotFound", "run_id": "r"}, RunNotFound, {"run_id": "r"}),
        (409, {"error": "RunBusy", "run_id": "r"}, RunBusy, {"run_id": "r"}),
        (409, {"error": "PipelineBusy", "pipeline": "p"}, PipelineBusy, {"pipeline": "p"}),
        (409, {"run_id": "r"}, RunConflict, {"run_id": "r"}),
        *((status, {}, InputError, {}) for status in (400, 404, 409, 413, 422)),
        *((status, {}, StoreError, {}) for status in (503, 507)),
        *((status, {"run_id": "r"}, ServerError, {"status": status}) for status in (402, 405, 410, 421, 429, 500, 502)),
    ],
)
def test_each_problem_is_the_error_of_an_engine(
    status: int, problem: dict[str, str], kind: type[StepwellError], facts: dict[str, Any]
) -> None:
    error = error_of(status, {"detail": "so it is", **problem}, "http://there")
    assert type(error) is kind
    assert "there" in str(error) or "so it is" in str(error)
    assert {name: getattr(error, name) for name in facts} == facts


def test_a_trigger_of_a_client_is_that_of_an_engine(open_server: Serving) -> None:
    with Client(open_server.url) as remote, Engine(open_server.service.store.url, runner=None) as direct:
        added = remote.triggers.add(Trigger("same", "add", cron="0 6 * * *", input={"a": 1}), paused=True)
        assert added.paused
        assert not remote.triggers.add(Trigger("same", "add", cron="0 7 * * *", input={"a": 1}), paused=False).paused
        for asked in (remote.triggers.get("same"), *(each for each in remote.triggers.all() if each.name == "same")):
            own = direct.triggers.get("same")
            for name in ("name", "version", "paused", "error", "trigger"):
                assert getattr(asked, name) == getattr(own, name), name
            assert asked.next_fires(3) == own.next_fires(3)
            assert len(asked.to_dict(2)["next"]) == 2
        many = remote.triggers.get("same", 9)
        assert [len(many.to_dict(*count)["next"]) for count in ((), (7,))] == [5, 7]
        assert [each["version"] for each in remote.triggers.versions("same")] == [1, 2]
        times = remote.triggers.backfill("same", int(DAY), int(DAY + 48 * HOURS), dry_run=True)
        assert times == [int(DAY + hours * HOURS) for hours in (7, 31)]


def test_a_start_whose_answer_is_lost_is_one_run(open_server: Serving) -> None:
    with Client(open_server.url) as remote, Engine(open_server.service.store.url, runner=None) as direct:
        before = {run.id for run in direct.runs()}
        for options in ({}, {"run_id": "chosen"}, {"idempotency_key": "key"}):
            with losing(remote) as lost:
                run = remote.start(Document(ADD), input={"a": 1}, **options)  # type: ignore[arg-type]
            assert len(lost) == 2
            after = {each.id for each in direct.runs()}
            assert after - before == {run.id}
            before = after
        with losing(remote):
            saved = remote.save(Document({**ADD, "name": "saved-once"}))
        assert [row.number for row in direct.parts.documents.versions("saved-once")] == [saved.version] == [1]
        run = direct.get("chosen")
        with losing(remote), pytest.raises(ServerError, match="cannot be reached"):
            remote.get("chosen").pause()  # done, and not asked twice by itself
        assert run.status is RunStatus.PAUSED


def test_what_was_removed_by_a_request_whose_answer_is_lost_is_removed(open_server: Serving) -> None:
    with Client(open_server.url) as remote:
        remote.triggers.add(Trigger("lost", "add", cron="0 6 * * *", input={"a": 4}))
        with losing(remote) as lost:
            remote.triggers.remove("lost")
        assert lost == ["DELETE /triggers/lost"] * 2
        with pytest.raises(StepwellError, match="no trigger 'lost'"):
            remote.triggers.remove("lost")  # that nobody has lost an answer to
        run = remote.start(Document(ADD), input={"a": 1}, run_id="removed")
        run.cancel()
        with losing(remote):
            run.delete()
        with pytest.raises(RunNotFound):
            remote.get("removed")
        with pytest.raises(RunNotFound):
            run.delete()


# Times


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/St_Johns", "Pacific/Apia"])
def test_times_mean_the_same_wherever_the_server_is(
    open_server: Serving, monkeypatch: pytest.MonkeyPatch, zone: str
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        with client(open_server) as api:
            name = f"zone-{zone.replace('/', '-')}"
            body = {"document": ADD, "input": {"a": 1}, "run_id": name}
            created = datetime.fromisoformat(api.post(RUNS, json=body).json()["created_at"])
            assert created.utcoffset() == timedelta(0)
            assert abs(created - datetime.now(UTC)) < timedelta(minutes=1)
            hour = timedelta(hours=1)
            for offset in (timedelta(0), timedelta(hours=5, minutes=30), timedelta(hours=-11)):
                for moved, inside in ((-hour, True), (timedelta(0), True), (hour, False)):
                    since = (created + moved).astimezone(timezone(offset)).isoformat()
                    found = api.get(RUNS, params={"prefix": name, "since": since}).json()["items"]
                    assert (len(found) == 1) is inside, since
                    found = api.get(RUNS, params={"prefix": name, "until": since}).json()["items"]
                    assert (len(found) == 1) is not inside, since
            naive = (created - hour).replace(tzinfo=None).isoformat()  # without an offset it is UTC
            assert len(api.get(RUNS, params={"prefix": name, "since": naive}).json()["items"]) == 1
            naive = (created + hour).replace(tzinfo=None).isoformat()
            assert api.get(RUNS, params={"prefix": name, "since": naive}).json()["items"] == []
    finally:
        monkeypatch.undo()
        time.tzset()
