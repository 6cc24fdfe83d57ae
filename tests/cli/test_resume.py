"""Whatever ends the process, the run is kept; `resume` goes on with it and repeats nothing that was completed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from tests.cli.conftest import Shop


def test_a_killed_run_is_resumed_without_repeating_what_completed(shop: Shop) -> None:
    running = shop.start("run", "shop:Slow", "--run-id", "slow")
    shop.until(lambda: "second" in shop.ledger())
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    shop.touch("go")
    ended = shop("resume", "slow")
    assert ended.json == "12"
    assert shop.ledger() == ["first", "second", "second", "third"]
    second = shop("show", "slow", "--json").json["nodes"][1]
    assert (second["status"], second["attempts"]) == ("COMPLETED", 2)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_is_kept_and_says_how_to_go_on(shop: Shop, number: signal.Signals) -> None:
    running = shop.start("run", "shop:Slow", "--run-id", "slow", STEPWELL_CLOSE_SECONDS="0.5")
    shop.until(lambda: "second" in shop.ledger())
    running.send_signal(number)
    ended = shop.end(running, code=130)
    assert "interrupted: run slow is kept, with all that is completed\n" in ended.err
    assert "  stepwell resume slow  goes on from there\n" in ended.err
    assert "Traceback" not in ended.err
    assert ended.out == ""
    shop.touch("go")
    assert shop("resume", "slow").json == "12"
    assert shop.ledger().count("first") == 1


def test_an_interrupted_resume_is_kept_too(shop: Shop) -> None:
    running = shop.start("run", "shop:Slow", "--run-id", "slow")
    shop.until(lambda: "second" in shop.ledger())
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    resumed = shop.start("resume", "slow", STEPWELL_CLOSE_SECONDS="0.5")
    shop.until(lambda: shop.ledger().count("second") == 2)
    resumed.send_signal(signal.SIGINT)
    assert "stepwell resume slow" in shop.end(resumed, code=130).err
    assert shop.status("slow") == "RUNNING"


def test_ctrl_c_in_the_middle_of_an_import_has_the_same_exit_code(shop: Shop) -> None:
    shop.write("rude.py", 'exec("raise KeyboardInterrupt")')
    shop("run", "rude:Thing", code=130)


def test_ctrl_c_on_a_terminal_reaches_bodies_in_processes_too_and_loses_nothing(shop: Shop) -> None:
    """A terminal sends it to the whole group."""
    running = shop.start("run", "shop:Isolated", "--run-id", "apart")
    shop.until(lambda: "apart" in shop.ledger())
    os.killpg(running.pid, signal.SIGINT)
    shop.end(running, code=130)
    shop.touch("go")
    assert shop("resume", "apart").json == "done"


def test_two_processes_on_one_run_share_it(shop: Shop) -> None:
    running = shop.start("run", "shop:Slow", "--run-id", "slow")
    shop.until(lambda: "second" in shop.ledger())
    other = shop.start("resume", "slow")
    assert other.stderr is not None
    assert other.stderr.readline() == "Slow  3 nodes  run slow\n"
    assert "stepwell resume" not in shop("show", "slow").out
    shop.touch("go")
    assert shop.end(running, code=0).json == shop.end(other, code=0).json == "12"
    assert sorted(shop.ledger()) == ["first", "second", "third"]


def test_resume_without_waiting_says_that_there_is_nothing_to_record(shop: Shop) -> None:
    running = shop.start("run", "shop:Slow", "--run-id", "slow")
    shop.until(lambda: "second" in shop.ledger())
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    assert "none: `stepwell resume slow` goes on with it" in shop("show", "slow").out
    told = shop("resume", "slow", "--no-wait").out
    assert "run slow is RUNNING: nothing needs to be recorded for it to go on, it only needs a worker" in told
    assert shop.ledger() == ["first", "second"]


def test_what_has_ended_cannot_be_resumed(shop: Shop) -> None:
    shop("run", "shop:Again", "--run-id", "done")
    shop("run", "shop:Mended", "--run-id", "failed", code=1)
    assert shop("resume", "done", code=6).err == (
        "error: run done is COMPLETED: there is nothing to resume\n"
        "  stepwell reattempt done NODE --cascade  runs a node again, and all that is below it\n"
        "  stepwell fork done --at NODE            does so in a new run, and keeps this one\n"
    )
    assert "  stepwell retry failed           runs what did not complete\n" in shop("resume", "failed", code=6).err


def test_resume_without_the_code_of_the_run_says_what_is_missing(shop: Shop) -> None:
    running = shop.start("run", "shop:Slow", "--run-id", "slow")
    shop.until(lambda: "second" in shop.ledger())
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    (shop.folder / "shop.py").rename(shop.folder / "store.py")
    assert "there is no module 'shop'" in shop("resume", "slow", code=2).err


def test_a_builder_run_is_refused_unharmed_in_a_wrong_folder(shop: Shop) -> None:
    """The program that ran it had another folder on its path; the command line has the one it is typed in."""
    (shop.folder / "scripts").mkdir()
    shop.write(
        "scripts/jobs_a.py",
        "import time\n"
        "from stepwell import Builder, Engine\n"
        "def work(item):\n"
        "    with open('ledger.txt', 'a') as ledger:\n"
        "        print(item, file=ledger)\n"
        "    time.sleep(0 if len(open('ledger.txt').readlines()) < 3 else 60)\n"
        "if __name__ == '__main__':\n"
        "    w = Builder('a')\n"
        "    w.fan_out(range(9), job=work, args=lambda i: {'item': i}, retry=3)\n"
        "    with Engine(max_concurrent_nodes=1) as engine:\n"
        "        engine.run(w, run_id='fan')\n",
    )
    environment = {**os.environ, "PYTHONPATH": str(shop.folder / "scripts")}
    script = subprocess.Popen(
        [sys.executable, "scripts/jobs_a.py"], cwd=shop.folder, env=environment, start_new_session=True
    )
    try:
        shop.until(lambda: len(shop.ledger()) > 2)
    finally:
        os.killpg(script.pid, signal.SIGKILL)
        script.wait()
    before = [node["attempts"] for node in shop("show", "fan", "--json").json["nodes"]]
    for command in (("resume", "fan"), ("retry", "fan"), ("work", "json", "--once")):
        refused = shop(*command, code={"resume": 2, "retry": 2, "work": 0}[command[0]]).err
        assert "jobs_a:work: there is no module 'jobs_a' to import from here" in refused
        assert str(shop.folder) in refused
        assert command[0] == "work" or "nothing was attempted and the run is as it was" in refused
    nodes = shop("show", "fan", "--json").json["nodes"]
    assert {node["status"] for node in nodes} <= {"COMPLETED", "READY", "RUNNING"}
    assert [node["attempts"] for node in nodes] == before
    assert "MissingJob" not in str(nodes)


def test_retry_runs_only_what_did_not_complete(shop: Shop) -> None:
    shop("run", "shop:Mended", "--run-id", "mended", code=1)
    shop("retry", "mended", code=1)
    shop.touch("mended")
    ended = shop("retry", "mended")
    assert ended.json == {"broken": "mended", "beside": "beside"}
    assert shop.ledger().count("before") == 1
    assert shop.ledger().count("broken") == 3


def test_retry_of_a_builder_imports_its_jobs_by_name(shop: Shop) -> None:
    shop.write(
        "jobs.py",
        "from pathlib import Path\n"
        "from stepwell import Builder\n"
        "def mend():\n"
        "    assert Path('mended').exists()\n"
        "    return 'mended'\n"
        "def build():\n"
        "    b = Builder('mending')\n"
        "    b.node('mend', job=mend)\n"
        "    return b\n",
    )
    shop("run", "jobs:build", "--run-id", "b", code=1)
    shop.touch("mended")
    assert shop("retry", "b").json == "mended"


def test_retry_without_waiting_records_and_runs_nothing(shop: Shop) -> None:
    shop("run", "shop:Mended", "--run-id", "mended", code=1)
    ran = shop.ledger()
    shop.touch("mended")
    told = shop("retry", "mended", "--no-wait").out
    assert told.startswith("run mended is RUNNING again: ")
    assert "stepwell resume mended" in told
    assert shop.ledger() == ran
    assert shop.status("mended") == "RUNNING"
    assert shop("resume", "mended").json["broken"] == "mended"


def test_only_what_failed_or_was_cancelled_can_be_retried(shop: Shop) -> None:
    shop("run", "shop:Again", "--run-id", "done")
    for words in (("retry", "done"), ("retry", "done", "--no-wait")):
        assert "only a FAILED, CANCELLED or PAUSED run can be retried" in shop(*words, code=6).err


def pay(shop: Shop, *, close_seconds: str) -> subprocess.Popen[str]:
    """A process in a body that must run at most once, and waits to be told to go."""
    shop.write(
        "careful.py",
        "import time\nfrom pathlib import Path\nfrom stepwell import Workflow, step\n"
        "class Pay(Workflow):\n"
        '    @step(on_lost="interrupt")\n'
        "    def pay(self):\n"
        "        with Path('ledger.txt').open('a') as ledger: ledger.write('pay\\n')\n"
        "        while not Path('go').exists(): time.sleep(0.01)\n"
        "        return 'paid'\n",
    )
    running = shop.start("run", "careful:Pay", "--run-id", "p", STEPWELL_CLOSE_SECONDS=close_seconds)
    shop.until(lambda: "pay" in shop.ledger())
    assert running.stderr is not None
    running.stderr.readline()  # its heading: the run is started, and the main thread waits for its end
    return running


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_promised_to_run_at_most_once_may_end_when_its_worker_is_asked_to(
    shop: Shop, number: signal.Signals
) -> None:
    """It was the last of its run, which has completed and was not interrupted."""
    running = pay(shop, close_seconds="60")
    running.send_signal(number)
    shop.touch("go")
    ended = shop.end(running, code=0)
    assert "stopping: what runs may end" in ended.err
    assert "interrupted" not in ended.err
    assert ended.json == "paid"
    assert shop.status("p") == "COMPLETED"


def test_what_did_not_end_in_time_is_told_with_what_helps_now(shop: Shop) -> None:
    running = pay(shop, close_seconds="0.2")
    running.send_signal(signal.SIGINT)
    told = shop.end(running, code=130).err
    assert shop.status("p") == "FAILED"
    assert "stepwell retry p" in told
    assert "resume p" not in told
