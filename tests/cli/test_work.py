"""`stepwell work`: every unfinished run it has code for, whoever started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from tests.cli.conftest import Shop


def leave_unfinished(shop: Shop, run_id: str, target: str = "shop:Slow", node: str = "second") -> None:
    before = shop.ledger().count(node)
    running = shop.start("run", target, "--run-id", run_id)
    shop.until(lambda: shop.ledger().count(node) > before)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()


def test_work_once_finishes_what_others_left_and_ends(shop: Shop) -> None:
    leave_unfinished(shop, "a")
    leave_unfinished(shop, "b")
    shop.touch("go")
    ended = shop("work", "shop", "--once")
    assert sorted(line.split()[:3] for line in ended.out.splitlines()) == [
        ["COMPLETED", "a", "Slow"],
        ["COMPLETED", "b", "Slow"],
    ]
    assert shop.ledger().count("first") == 2
    assert shop.ledger().count("third") == 2


def test_work_once_with_nothing_to_do_ends_at_once(shop: Shop) -> None:
    assert shop("work", "shop", "--once").out == ""


def test_work_once_leaves_what_it_has_no_code_for_and_says_so(shop: Shop) -> None:
    shop.write("other.py", (shop.folder / "shop.py").read_text().replace("class Slow(", "class Other("))
    leave_unfinished(shop, "mine")
    leave_unfinished(shop, "other", "other:Other")
    (shop.folder / "other.py").unlink()
    shop.touch("go")
    ended = shop("work", "shop", "--once")
    assert "not served: Other: other:Other: there is no module 'other' to import from here" in ended.err
    assert shop.status("mine") == "COMPLETED"
    assert shop.status("other") == "RUNNING"


def test_work_takes_up_runs_that_come_later_until_ctrl_c(shop: Shop) -> None:
    shop("run", "shop:Mended", "--run-id", "mended", code=1)
    worker = shop.start("work", "shop")
    assert worker.stderr is not None
    assert worker.stderr.readline().startswith("serving sqlite:///")
    shop.touch("mended")
    shop("retry", "mended", "--no-wait")
    shop.until(lambda: shop.status("mended") == "COMPLETED")
    worker.send_signal(signal.SIGINT)
    ended = shop.end(worker, code=0)
    assert ended.out.startswith("COMPLETED  mended  Mended")
    assert "stopping: " in ended.err


def test_two_workers_share_a_store_and_run_nothing_twice(shop: Shop) -> None:
    """Every body waits until both workers have begun one."""
    shop.write(
        "wide.py",
        "import os, time\n"
        "from pathlib import Path\n"
        "from shop import note\n"
        "from stepwell import Builder, Engine\n"
        "def part(item):\n"
        "    note(str(item))\n"
        "    Path(f'{os.getpid()}.worker').touch()\n"
        "    while len(list(Path().glob('*.worker'))) < 2: time.sleep(0.01)\n"
        "    return os.getpid()\n"
        "if __name__ == '__main__':\n"
        "    with Engine(runner=None) as engine:\n"
        "        wide = Builder('wide')\n"
        "        wide.fan_out(range(120), job=part)\n"
        "        engine.start(wide, run_id='wide')\n",
    )
    subprocess.run([sys.executable, "wide.py"], cwd=shop.folder, check=True)
    workers = [shop.start("work", "wide", "--once", STEPWELL_MAX_CONCURRENT_NODES="2") for _ in range(2)]
    for worker in workers:
        shop.end(worker, code=0)
    run = shop("show", "wide", "--json").json
    assert run["status"] == "COMPLETED"
    assert sorted(map(int, shop.ledger())) == list(range(120))
    assert set(run["result"].values()) == {worker.pid for worker in workers}


def test_work_ended_in_the_middle_leaves_the_rest_to_others(shop: Shop) -> None:
    leave_unfinished(shop, "slow")
    worker = shop.start("work", "shop")
    shop.until(lambda: shop.ledger().count("second") == 2)
    os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()
    shop.touch("go")
    shop("work", "shop", "--once")
    assert shop.status("slow") == "COMPLETED"
    assert shop.ledger() == ["first", "second", "second", "second", "third"]


def test_every_broken_module_is_told(shop: Shop) -> None:
    shop.write("broken.py", "1 / 0\n")
    refused = shop("work", "broken", "shop", "nowhere", code=2)
    assert "importing broken raised ZeroDivisionError: division by zero\n  raised at broken.py:1\n" in refused.err
    assert "there is no module 'nowhere'" in refused.err


def test_work_once_does_not_wait_for_what_is_paused(shop: Shop) -> None:
    leave_unfinished(shop, "a")
    shop("pause", "a")
    assert shop("work", "shop", "--once").out == ""
    assert shop.status("a") == "PAUSED"
