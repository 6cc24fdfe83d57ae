"""Which workers are alive, as far as it can be seen from here."""

from __future__ import annotations

import os
import subprocess
import sys

from stepwell.base.codec import encode
from stepwell.base.ids import WorkerId, machine
from stepwell.core.model import WorkerRow
from stepwell.core.store.living import among

NOW = 1_000


def worker(name: str, lease_until: int = NOW + 1, **info: object) -> WorkerRow:
    return WorkerRow(WorkerId(name), lease_until, 0, encode(info))


def test_a_worker_lives_as_long_as_its_lease() -> None:
    here = worker("here", machine=machine(), pid=os.getpid())
    over = worker("over", NOW, machine=machine(), pid=os.getpid())
    assert among((here, over), NOW) == (here,)


def test_a_process_of_this_machine_that_is_gone_does_not_live_though_its_lease_runs_on() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    gone = worker("gone", machine=machine(), pid=process.pid)
    elsewhere = worker("elsewhere", machine="another", pid=process.pid)
    silent = worker("silent")
    assert among((gone, elsewhere, silent), NOW) == (elsewhere, silent)
