"""The table of options is the only place that knows them: keywords, fields, documents and docs agree with it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_type_hints

from stepwell.core.graph import NODE_OPTIONS, JobOptions, MethodOptions, NodeSpec
from stepwell.define.document.forms import HANDLER_OPTIONS, OPTIONS

ROOT = Path(__file__).parents[3]


def test_every_keyword_is_a_row_and_every_row_a_keyword() -> None:
    keywords = {**MethodOptions.__annotations__, **JobOptions.__annotations__}
    assert keywords.keys() == {option.name for option in NODE_OPTIONS}


def test_every_row_fits_its_own_default() -> None:
    assert [option.name for option in NODE_OPTIONS if not option.fits(option.default)] == []


def test_defaults_are_those_of_a_node() -> None:
    fields = NodeSpec._field_defaults
    assert {o.name: o.default for o in NODE_OPTIONS if o.name in fields} == {
        o.name: fields[o.name] for o in NODE_OPTIONS if o.name in fields
    }


def test_documents_know_an_option_by_one_name_and_one_type() -> None:
    assert len(OPTIONS) == len({option.name for option in OPTIONS.values()})
    assert {option.name: option.type for option in NODE_OPTIONS} == get_type_hints(MethodOptions)
    assert set(HANDLER_OPTIONS) == {"retry", "timeout_seconds", "side_effects"}


def test_the_docs_have_the_table() -> None:
    page = (ROOT / "docs" / "workflows.md").read_text()
    rows = [line for line in page.splitlines() if re.match(r"\| `\w+=", line)]
    words = {None: "none", True: "`True`", False: "`False`", (): "none"}
    defaults = {o.name: words.get(o.default, f"`{o.default}`") for o in NODE_OPTIONS}
    defaults["idempotency_key"] = "run and node"
    assert rows == [f"| `{o.written}` | {o.about} | {defaults[o.name]} |" for o in NODE_OPTIONS]
