"""Values that must not be shown: masked in everything a body says before it leaves the worker.

The values are those of the process, as what is printed is: a body in any thread, loop or process may print any of them.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable
from urllib.parse import quote

from .errors import InputError

MASK = "***"
SHORTEST = 4
"""Characters. Masking less would blacken words that have nothing to do with the secret."""

_lock = threading.Lock()
_values: set[str] = set()
_pattern: re.Pattern[str] | None = None
_longest = 0


def secret(value: str) -> str:
    """Never show this value: in log lines, prints and errors of bodies it is stored as `***`. Returns the value.

        TOKEN = stepwell.secret(os.environ["PAYMENT_TOKEN"])

    Outputs are data and stay as they are. An empty value hides nothing and is only returned.
    """
    if not isinstance(value, str):
        raise InputError(f"a secret must be a string, not {type(value).__name__}")
    if value and len(value) < SHORTEST:
        raise InputError(f"a secret of {len(value)} characters cannot be masked: at least {SHORTEST} are needed")
    if value:
        hide([value])
    return value


def hide(values: Iterable[str]) -> None:
    """Mask these values from now on."""
    global _longest, _pattern  # noqa: PLW0603  # one pattern for the process, replaced whole
    with _lock:
        if _values.issuperset(values := tuple(values)):
            return
        _values.update(values)
        forms = sorted({form for value in _values for form in _forms(value)}, key=len, reverse=True)
        _pattern = re.compile("|".join(map(re.escape, forms)))
        _longest = len(forms[0])


def hidden() -> tuple[str, ...]:
    """The values that are masked here, for a process that must mask them too."""
    return tuple(_values)


def mask(text: str) -> str:
    return text if _pattern is None else _pattern.sub(MASK, text)


def longest() -> int:
    """Characters of the longest text that is masked: so near the place where a text was cut, one may have lost its end."""
    return _longest


def _forms(value: str) -> set[str]:
    """How a value may be written: as it is, escaped, in a URL; of several lines (a key file) also each of them."""
    forms = {value, repr(value)[1:-1], json.dumps(value)[1:-1], quote(value), quote(value, safe="")}
    lines = [line.strip() for line in value.splitlines()]
    return forms | {line for line in lines if len(line) >= 2 * SHORTEST}
