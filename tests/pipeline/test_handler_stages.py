"""A stage written in Python may be a handler with a config, as in a document."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepwell import Context, Engine, Handlers, Pipeline, handler
from stepwell.errors import DefinitionError
from tests.pipeline.blog import causes, write


@handler("shout")
def shout(ctx: Context, config: dict[str, str]) -> str:
    return f"{config['text'].upper()}{config.get('mark', '!')}"


def make(root: Path, mark: str = "!") -> Pipeline:
    pipeline = Pipeline("loud", root=root, handlers=Handlers([shout]))
    config = {"text": "{{ entity.id }}: {{ input.content }} ({{ input.path }})", "mark": mark}
    pipeline.stage("loud", handler="shout", input="in/{name}.txt", output="loud/{name}.txt", config=config)
    pipeline.stage(
        "both", handler="shout", output="both/{name}.txt", min_size=3,
        input={"quiet": "in/{name}.txt", "loud": "loud/{name}.txt"}, config={"text": "{{ quiet.content }}/{{ loud.content }}"},
    )  # fmt: skip
    return pipeline


def test_a_handler_makes_states_as_its_config_says(root: Path, engine: Engine) -> None:
    write(root, "in/a.txt", "hello")
    assert make(root).build(engine=engine).produced == ("loud a", "both a")
    assert (root / "loud/a.txt").read_text() == "A: HELLO (IN/A.TXT)!"
    assert (root / "both/a.txt").read_text() == "HELLO/A: HELLO (IN/A.TXT)!!"
    assert make(root).build(engine=engine).produced == ()
    assert causes(make(root, "?"), "loud/a.txt") == ["config_changed"]
    assert make(root, "?").build(engine=engine).produced == ("loud a", "both a")


def test_what_is_wrong_with_it_is_told_where_it_is_written(root: Path) -> None:
    pipeline = Pipeline("wrong", root=root)
    with pytest.raises(DefinitionError, match="a stage without a function: it needs a name"):
        pipeline.stage(handler="shout", input="in/{x}", output="out/{x}")
    with pytest.raises(DefinitionError, match="stage 'title': config: "):
        pipeline.stage("title", handler="shout", input="in/{x}", output="out/{x}", config={"text": "{{ input."})
    with pytest.raises(DefinitionError, match="it takes no function"):

        @pipeline.stage("loud", handler="shout", input="in/{x}", output="out/{x}")
        def loud(text: str) -> str:
            return text
