"""Refuses to build a wheel or a source distribution without the web UI. Editable installs need none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGE = "src/stepwell/server/ui/index.html"


class RequireUi(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "standard" and not (Path(self.root) / PAGE).exists():
            raise FileNotFoundError(f"{PAGE} is missing: run `make ui` first, so that what is installed has the web UI")
