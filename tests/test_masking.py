"""Secrets are masked however they are written, and nothing else is."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from urllib.parse import quote

import pytest

import stepwell
from stepwell import InputError, masking


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
