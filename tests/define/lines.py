"""Finds lines of a test file by a comment, to compare with the lines that errors show."""

from __future__ import annotations

from pathlib import Path


def place(file: str, mark: str) -> str:
    """`file:line` of the line that ends with the comment `# mark`."""
    lines = Path(file).read_text(encoding="utf-8").splitlines()
    (found,) = [number for number, line in enumerate(lines, start=1) if line.endswith(f"# {mark}")]
    return f"{file}:{found}"
