"""Masking: a secret is hidden in whatever form it comes back, in a text or in what another server answers."""

from __future__ import annotations

import json
from typing import Any, Literal, get_args
from urllib.parse import unquote

from hypothesis import strategies as st

from stepwell import Document, Engine, Handlers
from stepwell.base import masking
from stepwell.base.codec import text
from tests.handlers.servers import Server, answer

from .drawing import document

Form = Literal["plain", "escaped", "json", "percent"]
Where = Literal["text", "text body", "JSON body", "key", "header", "refusal"]


def _written(value: str, form: Form) -> str:
    return {
        "plain": value,
        "escaped": "".join(f"\\u{ord(each):04x}" for each in value),
        "json": json.dumps(value)[1:-1],
        "percent": "".join(f"%{byte:02X}" for byte in value.encode()),
    }[form]


def mask(given: list[str]) -> None:
    value, form, where = given
    masking._values.clear()
    masking._pattern = None
    written = _written(value, form)  # type: ignore[arg-type]
    if where == "text":
        masking.hide([value])
        shown = masking.mask(f"before {written} after")
        assert shown == "before *** after", shown[:200]
        masking.mask(written[: len(written) // 2] * 50)
    else:
        _mask_answer(value, written, where)


def _mask_answer(value: str, written: str, where: str) -> None:
    """A server sends back the secret that it was asked with."""
    quoted = written.replace("\\", "\\\\").replace('"', '\\"') if written == value else written
    answers = {
        "text body": answer(200, f"before {written} after".encode(), "text/plain"),
        "JSON body": answer(200, f'{{"a": ["{quoted}"]}}'.encode(), "application/json"),
        "key": answer(200, f'{{"{quoted}": 1}}'.encode(), "application/json"),
        "header": answer(200, b"{}", "application/json", X_Echo=written),
        "refusal": answer(400, written.encode(), "text/plain"),
    }
    handlers = Handlers(private_networks=["127.0.0.0/8"], secrets={"K": value})
    with Server(lambda _: answers[where]) as server, Engine("memory://", handlers=handlers) as engine:
        config = {"url": server.url, "bearer": "secret:K"}
        asks = document({"id": "a", "handler": "http_request", "config": config, "retry": 1})
        run = engine.run(Document(asks, handlers), check=False)
        node = run.nodes()[0]
        output: Any = run.output("a") if node.status == "COMPLETED" else None
        shown = [text(output), str(node.error), str(run.why()), repr(run.effects()), *map(str, run.logs())]
        assert server.asked[0].headers["authorization"] == f"Bearer {value}"
    for each in shown:
        for read in (each, unquote(each), json.loads(f'"{_escaped_quotes(each)}"')):
            assert value not in read, f"{where}: {each[:300]}"


def _escaped_quotes(shown: str) -> str:
    """With the escapes that JSON knows, and no other."""
    return json.dumps(shown)[1:-1].replace("\\\\u", "\\u")


SEEDS = [
    ["Secret-4711", "escaped", "text"],
    ["Secret-4711", "percent", "text"],
    ["".join(chr(33 + n * n % 94) for n in range(60_000)) + "the end", "json", "text"],
    *(["Secret-4711", form, where] for form in get_args(Form) for where in get_args(Where)[1:]),
]
DRAWN = st.tuples(
    # What begins so stands nowhere by itself.
    st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=4, max_size=40).map("Zq{}".format),
    st.sampled_from(get_args(Form)),
    st.sampled_from(get_args(Where)),
)
