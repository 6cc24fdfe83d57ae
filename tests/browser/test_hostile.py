"""Names, inputs, outputs, logs and errors of strangers are shown as they are written, do nothing, and slow nothing down."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

from playwright.sync_api import Page, expect

from stepwell import Builder, Document, Engine
from tests.browser.shop import ARABIC, LONG, MARKUP, Hostile, square

NODES = 1_500
CHARACTERS = 50_000
"""In sight. The field of a form has the whole input, which one edits there."""
LONGEST_TASK = 1_500
"""Milliseconds, on a machine that takes LOOP_MILLISECONDS for the loop. A megabyte in the page takes several times that."""
LOOP_MILLISECONDS = 50
LOOP = """() => {
  const start = performance.now();
  window.sum = 0;
  for (let i = 0; i < 1e6; i++) window.sum = (window.sum + i * i) % 1000003;
  return performance.now() - start;
}"""
HARM = """() => ({
  hacked: window.hacked,
  elements: document.querySelectorAll('[onerror], script:not([src]), iframe').length,
  nodes: document.querySelectorAll('*').length,
  characters: document.body.innerText.length,
  longest: Math.round(Math.max(0, ...window.tasks)),
})"""
TASKS = """window.tasks = [];
new PerformanceObserver((list) => window.tasks.push(...list.getEntries().map((entry) => entry.duration)))
  .observe({ type: 'longtask', buffered: true });"""
NAMES = (
    MARKUP,
    "مرحبا",
    "👩💻" * 40,
    "x" * 500,
    '"><svg onload=hacked()>',
    "__proto__",
    "constructor",
    "a,b",
    "%2e%2e/..",
)
DOCUMENT = {
    "name": "hostile-form",
    "description": MARKUP,
    "input": {
        "properties": {
            MARKUP: {"type": "string", "title": MARKUP, "description": MARKUP, "default": MARKUP},
            "choice": {"enum": [MARKUP, "مرحبا"]},
        },
        "required": ["choice"],
    },
    "nodes": [{"id": "x", "handler": "transform", "config": {"template": MARKUP}}],
}


def test_what_strangers_write_does_no_harm(engine: Engine, open_page: Callable[..., Page]) -> None:
    engine.save(Document(DOCUMENT))
    named = Builder(MARKUP, on_failure="finish")
    for name in NAMES:
        named.node(name, job=square, args={"number": 13})
    tags = {MARKUP[:60]: MARKUP[:200]}
    run = engine.start(Hostile(text=MARKUP + ARABIC + LONG), tags=tags).wait(30)
    other = engine.start(Hostile(text=MARKUP), tags=tags).wait(30)
    names = engine.start(named, tags=tags).wait(30)
    of = f"/runs/{run.id}"
    page = open_page("/")
    page.add_init_script(TASKS)
    for address, text in {
        "/": MARKUP,
        "/runs": MARKUP,
        f"/runs?q={quote(MARKUP)}": "<script>",
        of: "small",
        f"{of}?view=timeline": "small",
        f"{of}?view=table": "small",
        f"{of}?view=logs": MARKUP,
        f"{of}?view=overview": "<script>",
        f"{of}?node=small&tab=output": MARKUP,
        f"{of}?node=small&tab=logs": MARKUP,
        f"{of}?node=large&tab=output": "Load its",
        f"{of}?node=large&tab=input": MARKUP,
        f"{of}?node=wide&tab=input": "Load its",
        f"{of}?node=wide&tab=output": "deep",
        f"{of}?node=fails&tab=why": MARKUP,
        f"{of}?node=fails&tab=attempts": MARKUP,
        f"{of}?node={quote(MARKUP)}": MARKUP,
        f"/runs/{quote(MARKUP, safe='')}": MARKUP,
        f"/runs/{names.id}": MARKUP,
        f"/runs/{names.id}?view=timeline": MARKUP,
        f"/runs/{names.id}?view=table": MARKUP,
        f"/compare/{run.id}/{other.id}": "Compare",
        f"/compare/{run.id}/{other.id}?node=fails": "fails",
        "/workflows": "hostile-form",
        f"/workflows/{quote(MARKUP, safe='')}": MARKUP,
        "/workflows/hostile-form?tab=start": MARKUP,
        f"/workflows/Hostile?tab=start&from={run.id}": "text",
    }.items():
        page.goto(address)
        expect(page.get_by_text(text).filter(visible=True).first, address).to_be_visible()
        harm = page.evaluate(HARM)
        assert harm.get("hacked") is None, address
        assert harm["elements"] == 0, address
        assert harm["nodes"] <= NODES, (address, harm)
        assert harm["characters"] <= CHARACTERS, (address, harm)
        if harm["longest"] > LONGEST_TASK:
            assert harm["longest"] <= LONGEST_TASK * page.evaluate(LOOP) / LOOP_MILLISECONDS, (address, harm)
