"""Secrets are masked however they are written, and nothing else is."""

from __future__ import annotations

import html
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import stepwell
from stepwell import InputError
from stepwell.base import masking
from stepwell.base.codec import text
from stepwell.history.effects.record import masked_text
from tests import processor_time


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(masking, "_values", set())
    monkeypatch.setattr(masking, "_pattern", None)
    monkeypatch.setattr(masking, "_longest", 0)
    return


def test_a_secret_is_given_back_and_masked() -> None:
    assert stepwell.secret("hunter22") == "hunter22"
    assert masking.mask("the password is hunter22, really hunter22") == "the password is ***, really ***"
    assert masking.mask("nothing to hide") == "nothing to hide"


def test_without_secrets_nothing_changes() -> None:
    assert masking.mask("*** hunter22") == "*** hunter22"


def test_a_secret_that_holds_another_is_masked_whole() -> None:
    for value in ("pass", "pass-word", "pass-word-long"):
        stepwell.secret(value)
    assert masking.mask("pass-word-long pass-word pass") == "*** *** ***"


@pytest.mark.parametrize("write", [str, repr, quote, lambda value: quote(value, safe="")])
def test_a_secret_is_masked_however_it_is_written(write: object) -> None:
    value = stepwell.secret("pä/ss'w\"ö\\rd\n&more")
    written = write(value)  # type: ignore[operator]
    shown = masking.mask(f"<{written}>")
    assert "***" in shown
    assert "ss" not in shown


Write = Callable[[str], str]


def in_a_query(value: str) -> str:
    """As httpx and browsers write what stands in a URL already."""
    return quote(value, safe="".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"#<>'))


IN_JSON: list[Write] = [
    str,
    lambda value: json.dumps(value)[1:-1],
    lambda value: text(value)[1:-1],
    lambda value: repr(value)[1:-1],
]
IN_A_URL: list[Write] = [str, quote, quote_plus, lambda value: quote(value, safe=""), in_a_query]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=300)
@given(
    st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("\"\\'/%+ &\nä😀"), min_size=4, max_size=12),
    st.sampled_from(IN_JSON),
    st.sampled_from(IN_JSON),
    st.sampled_from(IN_A_URL),
)
@example('pä"ssw0rd', str, str, str)
@example('tok"en"quoted', IN_JSON[1], IN_JSON[1], str)
@example("correct horse battery", str, str, quote_plus)
@example('a!b c"d(e)', str, str, in_a_query)
def test_a_secret_is_found_in_json_in_json_in_a_url(value: str, inner: Write, outer: Write, url: Write) -> None:
    masking._values.clear()
    stepwell.secret(value)
    written = url(outer(inner(value)))
    assert masking.mask(written) == "***"
    assert masked_text(text({"found": [written]})) == '{"found":["***"]}'


@pytest.mark.parametrize(
    "written",
    [
        "p%c3%a4%2Fb%20c",
        "p%C3%A4/b+c",
        "p\\u00E4\\/b c",
        "pä%252Fb%2520c",
        "pÃ¤/b c",  # bytes that are looked at as latin-1
    ],
)
def test_other_libraries_escape_otherwise(written: str) -> None:
    stepwell.secret("pä/b c")
    assert masking.mask(f"<{written}>") == "<***>"


def test_a_secret_is_masked_in_html() -> None:
    value = stepwell.secret('<a href="x">\'&')
    assert masking.mask(html.escape(value)) == "***"


ESCAPES: list[Callable[[int], str]] = [
    lambda code: f"\\u{code:04x}",
    lambda code: f"\\u{code:04X}",
    lambda code: f"\\\\u{code:04x}",
    lambda code: f"\\x{code:02x}",
    lambda code: f"\\U{code:08x}",
    lambda code: f"%{code:02X}",
    lambda code: f"%25{code:02x}",
    lambda code: f"&#{code};",
    lambda code: f"&#x{code:x};",
    lambda code: f"&amp;#0{code};",
    chr,
]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=200)
@given(st.text("abzAZ059-._", min_size=4, max_size=10), st.data())
def test_a_secret_is_masked_also_where_it_is_escaped_without_need(value: str, data: st.DataObject) -> None:
    """Any JSON may write `S` as `\\u0053`, and what reads it makes the secret of it."""
    masking._values.clear()
    stepwell.secret(value)
    masking._pattern = None
    written = "".join(data.draw(st.sampled_from(ESCAPES))(ord(character)) for character in value)
    assert masking.holds_secret(written)
    assert masking.mask(f"<{written}> &#60;") == "<***> &#60;"
    assert masked_text(text({"found": [written]})) == '{"found":["***"]}'


def test_escapes_of_other_texts_stay_as_they_are() -> None:
    stepwell.secret("hunter22")
    for other in ("\\u0041b hunter2", "100%41", "&#65;", "\\x41\\n", "C:\\users", "&#9999999;"):
        assert masking.mask(other) is other
    assert masking.mask("\\u0041 hunter22") == "\\u0041 ***"


def test_what_changes_its_case_on_its_way_is_masked_in_any_case() -> None:
    stepwell.secret("HunTer22")
    assert masking.mask_any_case("x-hunter22: HUNTER22, hunter2") == "x-***: ***, hunter2"
    assert masking.mask("hunter22") == "hunter22"


@pytest.mark.parametrize("value", ["\\" * 5 + '"', '"' * 20, "%" * 20 + "x", "%25" * 10 + "x", " " * 20 + "x"])
def test_no_text_takes_long_to_mask(value: str) -> None:
    """A body may say anything: also what begins like a secret over and over."""
    stepwell.secret(value)
    for part in ("\\", '\\"', "%25", "%5C", "%", " +"):
        assert len(masking.mask(part * 10_000)) > 0


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.sampled_from("aZ7\\\"'/ &<\n\x00é€😀"), min_size=4, max_size=8), st.integers(0, 4))
def test_no_form_of_a_secret_is_longer_than_the_longest_that_is_named(value: str, times: int) -> None:
    masking._values.clear()
    masking._pattern = None
    masking.hide([value])
    for write in (json.dumps, quote, html.escape):
        written = value
        for _ in range(min(times, 1) if write is html.escape else times):
            written = write(written).removeprefix('"').removesuffix('"')
        if masking.mask(f"<{written}>") == f"<{masking.MASK}>":
            assert len(written) <= masking.longest(), written


def test_the_lines_of_a_key_file_are_masked_one_by_one() -> None:
    stepwell.secret("-----BEGIN-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQEF\n-----END-----\n")
    assert [masking.mask(line) for line in ("MIIEvQIBADANBg", "x kqhkiG9w0BAQEF y")] == ["***", "x *** y"]


def test_what_cannot_be_masked_is_refused() -> None:
    for value in ("abc", 17, None):
        with pytest.raises(InputError):
            stepwell.secret(value)  # type: ignore[arg-type]
    assert stepwell.secret("") == ""
    assert masking.mask("") == ""


def test_registering_needs_nothing_heavy() -> None:
    code = (
        "import sys, stepwell; stepwell.secret('abcd'); print('stepwell.engine' in sys.modules, 'apsw' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"


def service_account(*, quotes: int) -> str:
    """A key file as it stands in a `.env` file."""
    fields = {f"field_{number}": "value" for number in range(quotes // 4)}
    return json.dumps(fields, separators=(",", ":")).replace('"', '\\"')


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (service_account(quotes=60), service_account(quotes=60).replace("\\", "\\\\").replace('"', "\\u0022")[:-1]),
        (service_account(quotes=60), service_account(quotes=60)[:-1] * 20),
        ("\\\n" * 12 + "x", ("\\" * 16 + "n") * 12),
        ("\\$" * 12 + "x", ("\\" * 16 + "$") * 400),
        ('"' * 20 + "end", '\\"' * 100_000),
        ('"' * 20 + "end", "\\" * 300_000),
        ("\\" * 50 + "end", "\\" * 300_000),
        ("%25%5C" * 8 + "end", "%25" * 100_000),
        ("a b" * 20 + "end", "a+b" * 100_000),
        ("\U0001f600" * 10 + "end", "\\ud83d\\ude00" * 20_000),
        ("x" * 20 + "end", "\\u0078" * 50_000),
        ("x" * 20 + "end", "%252525" * 50_000 + "%" + "25" * 100_000),
        ("x" * 20 + "end", "&amp;#0000000" * 30_000 + "&#" + "0" * 300_000),
    ],
)
def test_no_text_takes_long_to_look_through(value: str, text: str) -> None:
    masking.hide([value])
    before = time.process_time()
    masking.mask(text)
    assert time.process_time() - before < 5


LONG = {
    "letters": "".join(map(str, range(12_000)))[:40_000],
    "anything": "".join(chr(33 + number * number % 94) for number in range(30_000)) + "the end",
    "no ASCII": "".join(chr(0x4E00 + number * number % 10_007) for number in range(9_000)),
    "lines": "\n".join(f"{number:064}" for number in range(900)),
}


@pytest.mark.parametrize("what", LONG)
def test_a_long_secret_is_masked_soon_however_it_is_written(what: str) -> None:
    value = LONG[what]
    with processor_time.at_most(2 * processor_time.SECOND):
        stepwell.secret(value)
        for write in (*IN_JSON, *IN_A_URL):
            assert masking.mask(f"before {write(value)} between {write(value)} after") == "before *** between *** after"
        assert masking.mask("nothing " * 1_000) == "nothing " * 1_000
        assert masking.mask(value[:300] * 100 + "x").count("*") >= 300, "the beginning alone, as often as it is there"
        assert masking.holds_secret(f"before {value}")


def test_a_backslash_at_the_end_is_masked_in_every_form() -> None:
    stepwell.secret("tail:\\")
    for written in ("tail:\\", "tail:\\\\", "tail:\\u005c", "tail\\u003a\\u005C", "tail:%5C"):
        assert masking.mask(f"<{written}>") == "<***>", written
