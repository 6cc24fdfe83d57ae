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
from stepwell import InputError, masking
from stepwell.codec import text
from stepwell.replay.effects.record import masked_text


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


@pytest.mark.parametrize("value", ["\\" * 5 + '"', '"' * 20, "%" * 20 + "x", "%25" * 10 + "x", " " * 20 + "x"])
def test_no_text_takes_long_to_mask(value: str) -> None:
    """A body may say anything: also what begins like a secret over and over."""
    stepwell.secret(value)
    for part in ("\\", '\\"', "%25", "%5C", "%", " +"):
        assert len(masking.mask(part * 10_000)) > 0


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
        "import sys, stepwell; stepwell.secret('abcd'); print('stepwell.runner' in sys.modules, 'apsw' in sys.modules)"
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
    ],
)
def test_no_text_takes_long_to_look_through(value: str, text: str) -> None:
    masking.hide([value])
    before = time.process_time()
    masking.mask(text)
    assert time.process_time() - before < 5
