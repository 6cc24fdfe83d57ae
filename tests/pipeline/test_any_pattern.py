"""Whatever is written as a pattern is refused with a reason, or matches."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from stepwell import DefinitionError
from stepwell.pipeline.patterns.paths import path_problem
from stepwell.pipeline.patterns.pattern import Pattern

PIECES = st.sampled_from([
    *"ab01-.!^]}[{/*?,:\\()|+$&~#é\n", "**", "[z-a]", "[!]", "[^a]", "[]a]", "[a--b]", "[a&&b]", "[[:alpha:]]", "{x}", "{y}",
    "{x:\\d+}", "{d:(?i)x}", "{d:a{2}}", "{d:a{99999999999}}", "{d:(?#}", "{d:(?P<x>a)}", "{d:(?=a)}", "{d:\\1}", "{d:[b-a]}",
    "{d:a|b}", "{d:)(}",
])  # fmt: skip
TEXTS = st.lists(PIECES, min_size=1, max_size=6).map("".join)
NAMES = st.text(st.sampled_from("ab01-.x é\n"), min_size=1, max_size=6)


@given(TEXTS, st.lists(NAMES, min_size=1, max_size=4).map("/".join), TEXTS)
def test_a_pattern_is_refused_with_a_reason_or_matches(text: str, path: str, other: str) -> None:
    try:
        pattern = Pattern(text)
    except DefinitionError:
        return
    values = pattern.match(path)
    assert values is None or set(values) == set(pattern.variables)
    assert not pattern.is_ambiguous(path) or values is None
    pattern.covers(path)
    pattern.leads_to(path.split("/"))
    with suppress(DefinitionError):
        assert pattern.overlaps(Pattern(other)) == Pattern(other).overlaps(pattern)
    if not pattern.is_loose and not any(part.regex for each in pattern.components for part in each.parts):
        filled = pattern.fill({name: f"{number}value" for number, name in enumerate(pattern.variables)})
        if path_problem(filled) is None:
            values = pattern.match(filled)
            assert pattern.is_ambiguous(filled) or pattern.fill(values or {}) == filled
