"""`stepwell show RUN NODE`: one node, its attempts, its config as written and as rendered, what it returned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...base.codec import text as json_line
from ..streams import say
from .words import duration, one_line, plain

if TYPE_CHECKING:
    from ...answers.nodes import NodeDetail

MAX_SHOWN = 2_000
"""Characters of an output or a config; --json has all of it."""


def print_node(data: NodeDetail) -> None:
    job = f"  {data['job']}" if data["job"] else ""
    say(plain(f"{data['id']}  {data['status']}{job}"))
    if data["reason"]:
        say(plain(f"  {data['reason']}"))
    if data["child"]:
        say(plain(f"run  {data['child']} performs it"))
    if data["config"]:  # as written, and as rendered for its latest attempt
        say(plain(f"config  {_cut(json_line(data['config']))}"))
        rendered = [attempt["config"] for attempt in data["attempt_list"] if attempt["config"] is not None]
        for config in rendered[-1:]:
            say(plain(f"rendered  {_cut(json_line(config))}"))
    for attempt in data["attempt_list"]:
        say(plain(f"attempt {attempt['number']}  {attempt['status']}  {duration(attempt['seconds'])}"))
        if attempt["error"] is not None:
            say(plain(f"  {attempt['error']['type']}: {one_line(attempt['error']['message'])}"))
        if attempt["outcome"]:
            say(plain(f"  outcome {_cut(json_line(attempt['outcome']))}"))
    if data["output"] is not None and data["output"]["value"] is not None:
        say(plain(f"output  {_cut(json_line(data['output']['value']))}"))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}... ({len(text):,} characters; --json has all)"
