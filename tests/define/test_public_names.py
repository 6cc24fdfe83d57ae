"""What `stepwell.define` offers is what it lists."""

from __future__ import annotations

import stepwell.define


def test_the_public_names_are_these() -> None:
    assert stepwell.define.__all__ == [
        "ANYTHING",
        "PREVIOUS",
        "Bodies",
        "Body",
        "Builder",
        "Declaration",
        "Definition",
        "Delta",
        "FanOut",
        "Finder",
        "NotRegistered",
        "Registry",
        "StateType",
        "Target",
        "Workflow",
        "bodies_for",
        "check_unchanged",
        "definition_of",
        "load_target",
        "step",
        "task",
    ]
    assert all(hasattr(stepwell.define, name) for name in stepwell.define.__all__)
