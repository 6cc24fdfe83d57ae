"""The two pipelines in Python.

    stepwell pipeline build -p examples.pipelines.blog:auto_blog -p examples.pipelines.blog:daily_podcast

The texts of a day are in `output/daily/DATE/`; `BLOG_ROOT` names another folder than `output`. `auto_blog` makes a summary
and a post for each day that has texts, and an index of all of them. `daily_podcast` reads the posts: both name
`blog/{date}.md`, and that connects them.
"""

from __future__ import annotations

import os
from pathlib import Path

from examples.pipelines.stand_in import post, script, summarise
from stepwell import Entity, Pipeline

ROOT = os.environ.get("BLOG_ROOT", "output")

auto_blog = Pipeline("auto-blog", root=ROOT, scan_interval=60)
daily_podcast = Pipeline("daily-podcast", root=ROOT)


@auto_blog.stage(input="daily/{date}/*.txt", output="daily/{date}/summary.txt", min_size=20)
def summary(files: list[str]) -> str:
    return summarise(files)


@auto_blog.stage(input="daily/{date}/summary.txt", output="blog/{date}.md")
def blog(entity: Entity, summary: str) -> str:
    return post(entity.date, summary)


@auto_blog.stage(input="blog/{date}.md", output="index.html", collect="date")
def index(entities: list[Entity]) -> str:
    items = "".join(f'<li><a href="{entity.path}">{entity.id}</a></li>\n' for entity in entities)
    return f"<ul>\n{items}</ul>\n"


@daily_podcast.stage(input="blog/{date}.md", output="podcast/{date}.txt")
def podcast(entity: Entity, text: str) -> str:
    return script(entity.date, text)


@daily_podcast.stage(input="podcast/{date}.txt", output="audio/{date}.wav", limit=2)
def audio(script: str, out: Path) -> None:
    """A program would write the file; its name ends as the state's does."""
    out.write_bytes(b"RIFF" + script.encode())
