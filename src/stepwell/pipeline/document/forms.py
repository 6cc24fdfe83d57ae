"""The forms of a pipeline document: the pipeline, its connections, and its nodes by their type."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from annotated_types import Ge, MinLen
from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from ...base.forms.reading import Expected, Form, Omittable, PositiveSeconds, Seconds
from ...define.document.retry import AnyRetry
from ..stage import FILTERS

Store = Literal["filesystem", "files", "database"]
Text = Annotated[str, MinLen(1), Expected("some text")]
PathPattern = Annotated[str, MinLen(1), Expected("a pattern of paths")]
Count = Annotated[int, Ge(0), Expected("a whole number from 0")]
Input = Annotated[
    PathPattern | dict[str, PathPattern], Expected("a pattern of paths, or an object of patterns by parameter")
]


class CamelForm(Form):
    """Fields are written as in `minSize`."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True)


class RetryPolicy(CamelForm):
    """After which times a failed state is made again."""

    noun = "retryPolicy"
    contents = "an object with backoffSeconds"
    backoff_seconds: Annotated[list[Seconds], Expected("a list of seconds")]
    max_attempts: Omittable[Annotated[int, Ge(1), Expected("a whole number from 1")]] = None

    @property
    def back_off(self) -> list[float]:
        return self.backoff_seconds[: None if self.max_attempts is None else self.max_attempts - 1]


class ConnectionForm(CamelForm):
    """One node above another."""

    noun = "a connection"
    contents = "an object with sourceNodeId and targetNodeId"
    source_node_id: Text
    target_node_id: Text


class PipelineForm(CamelForm):
    """A pipeline as JSON or YAML."""

    noun = "a pipeline"
    contents = "an object with mode and nodes"
    mode: Annotated[Literal["pipeline"], Expected('"pipeline"')] = Field(
        description="`pipeline`; else it is a [document](documents.md)"
    )
    name: Omittable[Text] = Field(None, description="by default the name of the file")
    description: Omittable[str] = Field(None, description="for people")
    state_store: Store = Field("filesystem", description="where its states are: files, or rows of a `database`")
    state_root: Annotated[str, MinLen(1), Expected("a folder")] = Field(
        "output", description="a folder, `sqlite:///...` or `postgresql://...`"
    )
    scan_interval: PositiveSeconds = Field(60.0, description="seconds between two scans")
    max_concurrent_entities: Omittable[Annotated[int, Ge(1), Expected("a whole number from 1")]] = Field(
        None, description="how many entities are worked on at once"
    )
    retry_policy: Omittable[RetryPolicy] = Field(
        None, description="`{backoffSeconds: [60, 300], maxAttempts: 3}`: when a failed state is made again"
    )
    nodes: Annotated[list[Any], MinLen(1), Expected("a list of nodes")] = Field(description="see below")
    connections: Annotated[list[Any], Expected("a list of connections")] = Field(
        [], description="`{sourceNodeId, targetNodeId}`: which node is above which"
    )


class StateNodeForm(CamelForm):
    """A node of a pipeline document."""

    noun = "a node"
    contents = "an object with id, typeId and data"
    id: Text = Field(description="any text")
    type_id: str = Field(description="what it is: one of the types below")
    name: Omittable[
        Annotated[
            str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$"), Expected("a name of letters, digits and _, and not entity")
        ]
    ] = Field(None, description="what others call it; by default its id, with _ for hyphens")
    position: Any = Field(None, description="where an editor draws it")
    data: Annotated[dict[str, Any], Expected("an object")] = Field({}, description="its fields, by its type")


class ScanData(Form):
    """Finds entities."""

    noun = "state_scan"
    pattern: PathPattern = Field(description="what finds them: a path with {variables}")
    filter: Omittable[Literal[FILTERS]] = Field(None, description="`hasFiles`: leave out empty folders")  # type: ignore[valid-type]
    scan_interval: Omittable[Seconds] = Field(None, description="read over: the pipeline has `scanInterval`")


class StateData(CamelForm):
    """A state that nodes below it read, or wait for."""

    noun = "a state"
    path: Omittable[PathPattern] = Field(None, description="a path with {variables}, globs and {{ $.name.path }}")
    state_type: Omittable[Text] = Field(None, description="the node that makes it")


class MadeData(CamelForm):
    """What all stages have."""

    input: Omittable[Input] = Field(None, description="what it reads; by default the node above it")
    min_size: Count = Field(0, description="the fewest bytes that an output may have")
    collect: Annotated[str | list[str], Expected("a variable, or a list of them")] = Field(
        [], description="variables of which all values go into one state"
    )


class TransformData(MadeData):
    """A stage."""

    noun = "state_transform"
    output: PathPattern = Field(description="what it writes: a path with {variables} and {{ $.name.path }}")
    transform: Annotated[str, MinLen(1), Expected("the name of a handler, or module:function")] = Field(
        description="a handler, or a function of an allowed module"
    )
    config: Annotated[dict[str, Any], Expected("an object")] = Field(
        {}, description="what the handler is to do; strings may be templates"
    )
    quiet: Seconds = Field(0.0, description="seconds that its inputs must have been unchanged")
    priority: int = Field(0, description="of its runs")
    limit: Omittable[Annotated[int, Ge(1), Expected("a whole number from 1")]] = Field(
        None, description="how many entities are worked on at once"
    )
    timeout: Omittable[PositiveSeconds] = Field(None, description="seconds that one attempt may take")
    retry: Omittable[AnyRetry] = None
    version: Omittable[str] = Field(None, description="stands for the code: another one makes its states stale")


class WriteData(StateData, MadeData):
    """A stage that writes a text."""

    noun = "state_write"
    content: Any = Field("{{ input.content }}", description="the text, a template; by default what is above it")


class TriggerData(StateData):
    """Starts a workflow for each new state."""

    noun = "state_trigger"
    workflow: Omittable[Annotated[Text, Expected("the name of a saved workflow")]] = Field(
        None, description="the name of a saved workflow"
    )
    filter: Omittable[str] = Field(None, description="an expression, as in codeHash == currentCodeHash")
    existing: bool = Field(False, description="whether states count that were fresh before the first build")


AnyData: TypeAlias = ScanData | StateData | TransformData | WriteData | TriggerData
DATA: dict[str, type[AnyData]] = {
    "state_scan": ScanData,
    "state_read": StateData,
    "state_check": StateData,
    "state_gate": StateData,
    "state_transform": TransformData,
    "state_write": WriteData,
    "state_trigger": TriggerData,
}
"""The types of nodes, and the form of the `data` of each."""
