"""A stand-in for a language model: what it answers follows from what it is asked, so that examples can be tested."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from stepwell import handler


def summarise(texts: list[str], words: int = 12) -> str:
    """The most frequent words, as a model would never say it."""
    found = Counter(word.lower() for text in texts for word in re.findall(r"[A-Za-z]{4,}", text))
    ranked = sorted(found, key=lambda word: (-found[word], word))
    return f"Today was about {', '.join(ranked[:words])}.\n"


def post(date: str, summary: str) -> str:
    return f"# Digest of {date}\n\n{summary}\nWritten by a stand-in.\n"


def script(date: str, text: str) -> str:
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return f"HOST: Welcome to {date}.\n" + "".join(f"HOST: {line}\n" for line in lines)


@handler("claude_summarize")
def claude_summarize(ctx: Any, config: Any) -> Any:
    """Summarise the texts of a day."""
    return {"result": summarise(config["input"])}


@handler("claude_blog")
def claude_blog(ctx: Any, config: Any) -> Any:
    """Write a post from a summary."""
    return {"result": post(config["entity"]["id"], config["input"])}


@handler("write_script")
def write_script(ctx: Any, config: Any) -> Any:
    """Write what a host says."""
    return {"result": script(config["date"], config["text"])}
