"""The digest tells graphs apart; the signature shows their shape to people."""

from __future__ import annotations

import os
import subprocess
import sys
from hashlib import sha256

from hypothesis import given

from stepwell.core.graph import Graph, NodeSpec, Retry
from tests.core.graph.dags import dags

ORDER = [
    NodeSpec("validate", "validate"),
    NodeSpec("enrich", "enrich", depends_on=("validate",)),
    NodeSpec("check", "check", depends_on=("enrich", "validate"), kind="task", retry=Retry(3), timeout=30.0),
]


def test_the_digest_is_the_hash_of_the_document_which_does_not_change_between_versions() -> None:
    document = (
        b'[{"id":"validate"},'
        b'{"depends_on":["validate"],"id":"enrich"},'
        b'{"depends_on":["enrich","validate"],"id":"check","kind":"task","retry":{"max_attempts":3},"timeout":30.0}]'
    )
    assert Graph(ORDER).document == document
    assert Graph(ORDER).digest == sha256(document).hexdigest()


def test_the_signature_is_the_hash_of_sorted_names_with_their_sorted_dependencies() -> None:
    canonical = b'[["check",["enrich","validate"]],["enrich",["validate"]],["validate",[]]]'
    assert Graph(ORDER).signature == sha256(canonical).hexdigest()


def test_an_option_changes_the_digest_but_not_the_signature() -> None:
    plain, slow = Graph(ORDER), Graph([*ORDER[:2], ORDER[2]._replace(timeout=60.0)])
    assert plain.digest != slow.digest
    assert plain.signature == slow.signature
    assert plain != slow


def test_dependencies_are_a_set() -> None:
    turned = ORDER[2]._replace(depends_on=("validate", "enrich"))
    assert Graph([*ORDER[:2], turned]).digest == Graph(ORDER).digest


@given(dags())
def test_the_signature_does_not_see_the_order_of_declaration(specs: list[NodeSpec]) -> None:
    assert Graph(specs).signature == Graph(specs[::-1]).signature


def test_another_process_with_another_hash_seed_gives_the_same_digest() -> None:
    code = (
        "from stepwell.core.graph import Graph, NodeSpec;"
        "print(Graph([NodeSpec('a', 'a'), NodeSpec('b', 'b', depends_on=('a',), args={'y': 1, 'x': [2]})]).digest)"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(seen) == 1
