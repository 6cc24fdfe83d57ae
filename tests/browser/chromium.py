"""Where Chromium is, and how it is started."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
FLAGS = [
    *("--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-quic", "--no-first-run"),
    *(["--no-sandbox"] if os.geteuid() == 0 else []),
]


def find() -> str:
    """The path of Chromium; a RuntimeError says what to do where there is none."""
    found = subprocess.run([ROOT / "scripts" / "chromium"], capture_output=True, text=True, check=False)
    if found.returncode:
        raise RuntimeError(found.stderr.strip().splitlines()[-1])
    return found.stdout.strip()
