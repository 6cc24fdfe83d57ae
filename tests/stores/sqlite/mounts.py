"""File systems that are full or may not be written, also for root, who may do everything with plain files."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


def run(*command: str) -> bool:
    with suppress(OSError):
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    return False


@contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[Path]:
    """A file system of this size, mounted at `folder`."""
    folder.mkdir()
    if not run("mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder)):
        pytest.skip("only root may mount a small file system; see the test with max_page_count")
    try:
        yield folder
    finally:
        run("umount", "-l", str(folder))


@contextmanager
def read_only(path: Path) -> Iterator[None]:
    """Nobody may write to this file, or create and remove files in this folder."""
    mode = path.stat().st_mode
    path.chmod(mode & 0o555)
    immutable = os.geteuid() == 0 and run("chattr", "+i", str(path))
    bound = os.geteuid() == 0 and not immutable and run("mount", "--bind", str(path), str(path))
    bound = bound and run("mount", "-o", "remount,ro,bind", str(path))
    try:
        if os.geteuid() == 0 and not immutable and not bound:
            pytest.skip("this system lets root write everywhere: neither chattr +i nor a read-only mount works")
        yield
    finally:
        if immutable:
            run("chattr", "-i", str(path))
        if bound:
            run("umount", "-l", str(path))
        path.chmod(mode)
