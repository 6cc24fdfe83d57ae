"""Runs inputs in a process of its own, which is killed when one takes too long."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SECONDS = 30.0
"""Of one input, in processor time, so that a busy machine changes nothing. Most limits are for a few seconds."""
STUCK_SECONDS = 300.0
"""Of one input by the clock: it waits for something that does not come."""
LOOK_SECONDS = 0.5
MEGABYTES = 700
"""Of one input, beyond what the process had before."""


def _processor_seconds(pid: int) -> float:
    """What a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Limited:
    """A process for one target after another. It is started again when an input had to be ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def problem(self, target: str, given: Any) -> str | None:
        """What is wrong with how a target takes an input; None if nothing is."""
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps([target, given]) + "\n")
        process.stdin.flush()
        began, until = _processor_seconds(process.pid), time.monotonic() + STUCK_SECONDS
        while not select.select([process.stdout], [], [], LOOK_SECONDS)[0]:
            if _processor_seconds(process.pid) - began > SECONDS or time.monotonic() > until:
                self.close()
                return f"it takes more than {SECONDS:g} s"
        line = process.stdout.readline()
        if not line:
            status = process.wait()
            self.close()
            return f"its process ended with {status}"
        found: str | None = json.loads(line)
        if found is not None:
            self.close()  # its memory is not what it was before
        return found

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            command = [sys.executable, "-m", "tests.fuzz.child", str(MEGABYTES)]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self._process

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
