"""The guard refuses what a replay could not repeat, names the line, and leaves everybody else alone."""

# ruff: noqa: PLW0108  # the line that calls is what is tested, so each call needs one here
from __future__ import annotations

import asyncio
import contextlib
import cProfile
import datetime as dates
import logging
import multiprocessing
import os
import queue
import random
import secrets
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import date, datetime
from pathlib import Path
from time import CLOCK_REALTIME, localtime, strftime
from time import time as wall_clock
from typing import Any

import pytest

from stepwell import Context, Engine, NodeStatus, Workflow, step
from stepwell.errors import UnrecordedCall
from stepwell.history import guard
from stepwell.history.guarding.guard import guarded_call
from tests.engine.conftest import OpenEngine
from tests.history import bodies
from tests.history.test_effects import ISOLATIONS, run_one


class Later(datetime):
    """A class of somebody's own."""


def by_datagrams(send: Callable[[socket.socket], Any]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        send(own)


NO_TIME = None
A_TIME = 0

REFUSED: list[tuple[str, Callable[[], Any]]] = [
    ("time.time", lambda: time.time()),
    ("time.time", lambda: wall_clock()),
    ("time.time_ns", lambda: time.time_ns()),
    ("time.localtime without a time", lambda: localtime()),
    ("time.gmtime without a time", lambda: time.gmtime()),
    ("time.strftime without a time", lambda: strftime("%Y")),
    ("time.ctime without a time", lambda: time.ctime()),
    ("time.localtime without a time", lambda: localtime(None)),
    ("time.gmtime without a time", lambda: time.gmtime(NO_TIME)),
    ("time.ctime without a time", lambda no_time=None: time.ctime(no_time)),
    ("time.localtime without a time", lambda: time.localtime(*())),
    ("time.localtime without a time", lambda *times: time.localtime(*times)),
    ("time.clock_gettime of the wall clock", lambda: time.clock_gettime(time.CLOCK_REALTIME)),
    ("time.clock_gettime of the wall clock", lambda: time.clock_gettime(0)),
    ("time.clock_gettime_ns of the wall clock", lambda: time.clock_gettime_ns(CLOCK_REALTIME)),
    ("time.clock_gettime_ns of the wall clock", lambda clock=0: time.clock_gettime_ns(clock)),
    ("datetime.now", lambda: datetime.now()),
    ("datetime.now", lambda: dates.datetime.now(dates.UTC)),
    ("date.today", lambda: date.today()),
    ("Later.now", lambda: Later.now()),
    ("random.random", lambda: random.random()),
    ("random.randint", lambda: random.randint(1, 6)),
    ("random.choice", lambda: random.choice([1, 2])),
    ("random.shuffle", lambda: random.shuffle([1, 2])),
    ("random.gauss", lambda: random.gauss(0, 1)),
    ("random.Random", lambda: random.Random()),
    ("random.SystemRandom.random", lambda: random.SystemRandom().random()),
    ("uuid.uuid1", lambda: uuid.uuid1()),
    ("uuid.uuid4", lambda: uuid.uuid4()),
    ("os.urandom", lambda: os.urandom(4)),
    ("secrets.token_hex", lambda: secrets.token_hex(4)),
    ("socket.create_connection", lambda: socket.create_connection(("127.0.0.1", 9))),
    ("socket.gethostbyname", lambda: socket.gethostbyname("localhost")),
    ("socket.gethostbyaddr", lambda: socket.gethostbyaddr("127.0.0.1")),
    ("socket.getfqdn", lambda: socket.getfqdn("127.0.0.1")),
    ("socket.getnameinfo", lambda: socket.getnameinfo(("127.0.0.1", 9), 0)),
    ("socket.sendto", lambda: by_datagrams(lambda own: own.sendto(b"x", ("127.0.0.1", 9)))),
    ("socket.sendmsg", lambda: by_datagrams(lambda own: own.sendmsg([b"x"], [], 0, ("127.0.0.1", 9)))),
    ("multiprocessing.process.BaseProcess.start", lambda: multiprocessing.get_context("spawn").Process().start()),
    ("subprocess.run", lambda: subprocess.run(["true"], check=False)),
    ("os.system", lambda: os.system("true")),
    ("os.fork", lambda: os.fork()),
]
ALLOWED: list[Callable[[], Any]] = [
    lambda: random.Random(7).random(),
    lambda: time.sleep(0),
    lambda: time.monotonic(),
    lambda: time.perf_counter(),
    lambda: time.clock_gettime(time.CLOCK_MONOTONIC),
    lambda: time.clock_gettime_ns(time.CLOCK_PROCESS_CPUTIME_ID),
    lambda: time.localtime(0),
    lambda: time.gmtime(*(0,)),
    lambda: time.ctime(A_TIME),
    lambda then=0: time.localtime(None or then),
    lambda: time.strftime("%Y", (2026, 1, 1, 0, 0, 0, 0, 1, 0)),
    lambda: datetime.fromisoformat("2026-01-15"),
    lambda: datetime.fromtimestamp(0),
    lambda: uuid.uuid5(uuid.NAMESPACE_DNS, "x"),
    lambda: logging.getLogger("guarded").warning("logging asks for the time"),
    lambda: threading.Event().wait(0.001),
    lambda: queue.Queue[int]().put(1, timeout=1),
    lambda: asyncio.run(asyncio.sleep(0.001)),
    lambda: tempfile.gettempdir(),
    lambda: Path(__file__).read_text(encoding="utf-8"),
    lambda: socket.socket().close(),
]


@pytest.mark.parametrize(
    ("function", "call"), REFUSED, ids=[f"{place}-{name}" for place, (name, _) in enumerate(REFUSED)]
)
def test_it_refuses_and_names_the_function_the_line_and_what_to_use(function: str, call: Callable[[], Any]) -> None:
    with pytest.raises(UnrecordedCall) as caught, guard("charge"):
        call()
    error = caught.value
    assert error.function == function
    assert error.where == f"{__file__}:{call.__code__.co_firstlineno}"
    assert str(error).startswith(f"node 'charge' called {function} at {error.where} and its answer is not recorded")
    assert "ctx." in error.instead
    call_again = function.startswith("time.time")
    assert sys.getprofile() is None
    if call_again:
        call()


@pytest.mark.parametrize("call", ALLOWED, ids=range(len(ALLOWED)))
def test_it_leaves_alone_what_is_harmless(call: Callable[[], Any]) -> None:
    with guard():
        call()


def test_what_an_expression_gives_to_a_function_of_c_is_not_seen() -> None:
    times: list[Any] = [None, time.CLOCK_REALTIME]
    with guard():
        found = [time.localtime(times[0]), time.gmtime(*times[:1]), time.clock_gettime(times[1])]
    assert all(found)


@pytest.fixture
def connection() -> Iterator[socket.socket]:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as near,
        server.accept()[0] as far,
    ):
        far.sendall(b"hello")
        yield near


@pytest.mark.parametrize(
    "talk",
    [
        lambda connection: connection.send(b"x"),
        lambda connection: connection.sendall(b"x"),
        lambda connection: connection.sendmsg([b"x"]),
        lambda connection: connection.recv(1),
        lambda connection: connection.recv_into(bytearray(1)),
        lambda connection: connection.makefile("rb").read(1),
    ],
)
def test_a_connection_that_was_there_is_no_way_to_the_network(
    connection: socket.socket, talk: Callable[[socket.socket], Any]
) -> None:
    with pytest.raises(UnrecordedCall, match=r"called socket\."), guard():
        talk(connection)


def test_nor_is_one_with_tls(connection: socket.socket) -> None:
    context = ssl.create_default_context()
    with context.wrap_socket(connection, server_hostname="localhost", do_handshake_on_connect=False) as talking:
        for talk in (lambda: talking.send(b"x"), lambda: talking.write(b"x"), lambda: talking.recv(1)):
            with pytest.raises(UnrecordedCall, match=r"called ssl\.SSLSocket\."), guard():
                talk()


def test_sockets_inside_a_process_are_nobodys_network() -> None:
    near, far = socket.socketpair()
    with near, far, guard():
        near.sendall(b"x")
        assert far.recv(1) == b"x"


def test_what_stepwell_does_by_way_of_a_library_is_no_concern_of_the_body(tmp_path: Path) -> None:
    """As a driver of a database that looks at the clock while a durable effect is stored."""
    library = tmp_path / "site-packages" / "driver.py"
    ours = tmp_path / "storing.py"
    found = {"driver": library, "stepwell.storing": ours}
    library.parent.mkdir()
    library.write_text("import time\ndef store(): return time.time()")
    ours.write_text("def keep(store): return store()")
    loaded: dict[str, dict[str, Any]] = {name: {"__name__": name} for name in found}
    for name, file in found.items():
        exec(compile(file.read_text(), str(file), "exec"), loaded[name])
    keep, store = loaded["stepwell.storing"]["keep"], loaded["driver"]["store"]
    with guard():
        assert keep(store) > 0
    with pytest.raises(UnrecordedCall, match="through driver"), guard():
        store()


@pytest.mark.parametrize("job", [secrets.token_hex, os.urandom])
def test_a_body_may_itself_be_what_is_refused(open_engine: OpenEngine, job: Callable[..., Any]) -> None:
    error = (
        run_one(open_engine(guard=True), job, **({"nbytes": 4} if job is secrets.token_hex else {"size": 4}))
        .node("body")
        .error
    )
    assert error is not None
    assert error.type == "UnrecordedCall"


def test_a_refusal_that_is_swallowed_is_raised_in_the_end() -> None:
    with pytest.raises(UnrecordedCall, match=r"time\.time"), guard(), contextlib.suppress(UnrecordedCall):
        time.time()


def test_only_its_own_thread_is_guarded() -> None:
    seen: list[float] = []
    with guard():
        thread = threading.Thread(target=lambda: seen.append(time.time()))
        thread.start()
        thread.join()
    assert seen


def test_only_its_own_tasks_are_guarded() -> None:
    async def guarded() -> str:
        try:
            with guard("guarded"):
                await asyncio.sleep(0.01)

                async def inner() -> None:
                    time.time()

                await asyncio.gather(inner())
        except UnrecordedCall:
            return "refused"
        return "went through"

    async def free() -> float:
        for _ in range(5):
            await asyncio.sleep(0.005)
            time.time()
        return time.time()

    async def both() -> list[Any]:
        return await asyncio.gather(guarded(), free(), guarded())

    first, second, third = asyncio.run(both())
    assert (first, third) == ("refused", "refused")
    assert second > 0


def test_asyncio_does_not_open_a_way_to_the_network() -> None:
    async def connect() -> None:
        await asyncio.open_connection("127.0.0.1", 9)

    async def start() -> None:
        await asyncio.create_subprocess_exec("true")

    for tries in (connect, start):
        with pytest.raises(UnrecordedCall), guard():
            asyncio.run(tries())


def test_a_profiler_that_was_there_is_there_again() -> None:
    def profiler(*_: object) -> None: ...

    sys.setprofile(profiler)
    try:
        with guard():
            assert sys.getprofile() is not profiler
        assert sys.getprofile() is profiler
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_an_engine_may_guard_its_bodies(open_engine: OpenEngine, tmp_path: Path, isolation: Any) -> None:
    engine = open_engine(guard=True)
    for job in (bodies.read_clock_unrecorded, bodies.read_clock_and_swallow, bodies.read_date_on_the_loop):
        run = run_one(engine, job, isolation)
        error = run.node("body").error
        assert error is not None, job
        assert error.type == "UnrecordedCall"
        assert "node 'body' called " in error.message
        assert f"{bodies.__file__}:" in error.message
    assert run_one(engine, bodies.read_clock_in_an_effect, isolation).status == "COMPLETED"
    assert run_one(engine, bodies.behave, isolation, folder=str(tmp_path)).check().output("body")[:2] == [True, True]


def test_without_it_nothing_is_refused(engine: Engine) -> None:
    assert run_one(engine, bodies.read_clock_unrecorded).check().output("body") > 0


def test_guarded_bodies_beside_each_other(open_engine: OpenEngine) -> None:
    class Many(Workflow):
        @step(depends_on=None)
        def good(self, ctx: Context) -> float:
            time.sleep(0.01)
            return ctx.now().timestamp()

        @step(depends_on=None)
        def bad(self) -> float:
            return time.time()

        @step(depends_on=None)
        async def late(self) -> None:
            await asyncio.sleep(0.02)
            datetime.now()

        @step(depends_on=None)
        async def later(self, ctx: Context) -> float:
            for _ in range(10):
                await asyncio.sleep(0.005)
            return ctx.random.random()

        @step(depends_on=None)
        async def latest(self) -> None:
            for _ in range(15):
                await asyncio.sleep(0.005)
            random.random()

    class Finishing(Many, on_failure="finish"): ...

    run = open_engine(guard=True).run(Finishing(), check=False)
    statuses = {node.name: node.status for node in run.nodes()}
    failed = NodeStatus.FAILED
    assert statuses == {
        "good": NodeStatus.COMPLETED,
        "bad": failed,
        "late": failed,
        "later": NodeStatus.COMPLETED,
        "latest": failed,
    }


def test_another_profiler_goes_on_when_the_guard_is_left() -> None:
    profile = cProfile.Profile()
    profile.enable()
    try:
        with guard("n"):
            pass
        sorted([2, 1])
    finally:
        profile.disable()
    assert sys.getprofile() is None
    profile.create_stats()
    assert any("sorted" in str(key) for key in profile.stats)  # type: ignore[attr-defined]


def test_a_guarded_coroutine_may_be_thrown_away_in_another_thread() -> None:
    async def body() -> None:
        await asyncio.sleep(60)

    coroutine = guarded_call(body, "n")
    thread = threading.Thread(target=begin, args=(coroutine,))
    thread.start()
    thread.join()
    coroutine.close()
    assert sys.getprofile() is None


def begin(coroutine: Any) -> None:
    loop = asyncio.new_event_loop()
    task = loop.create_task(coroutine)
    loop.call_later(0.01, loop.stop)
    loop.run_forever()
    assert not task.done()
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    loop.close()


def test_a_coroutine_that_is_discarded_where_it_ran_leaves_no_guard_behind() -> None:
    async def body() -> None:
        with guard():
            await asyncio.sleep(0)

    before = sys.getprofile()
    coroutine = body()
    coroutine.send(None)
    coroutine.close()
    assert sys.getprofile() is before
    assert time.time() > 0
