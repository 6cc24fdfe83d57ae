"""`Workflow`: a workflow as a class. Its methods are the nodes, its annotations the input."""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, dataclass_transform

from ...base.clock import Duration
from ...base.performer import Performer
from ...base.place import SourceLine, caller, neighbours
from ...core.graph import Graph, SideEffects
from ...errors import DefinitionError, FrozenInstance, InputError
from ..code.address import address_of
from ..options import OnFailure, checked_run_options, checked_workflow_name
from ..types.inputs import checked, stored_inputs
from .compile import Compiled, compiled
from .decorators import declared

if TYPE_CHECKING:
    from ...triggers import Trigger


class _ClassBody(dict[str, Any]):
    """The namespace of a class body, in which a node cannot be overwritten: it would be lost silently."""

    def __setitem__(self, name: str, value: Any) -> None:
        old, new = declared(self.get(name)), declared(value)
        if name in self and old is not new:
            first = f" (first at {old.place})" if old is not None else ""
            raise DefinitionError(
                f"{name!r} is defined twice in one class{first}; steps, tasks and methods share one namespace",
                where=new.place if new is not None else caller(),
            )
        super().__setitem__(name, value)


class WorkflowType(ABCMeta):
    """The type of workflow classes. It only guards the class body; Workflow does the rest."""

    @classmethod
    def __prepare__(metacls, name: str, bases: tuple[type, ...], /, **options: Any) -> _ClassBody:
        return _ClassBody()


@dataclass_transform(eq_default=False, kw_only_default=True, frozen_default=True)
class Workflow(Performer, metaclass=WorkflowType):
    """A workflow that lives in code. Its graph is compiled when the class is complete.

        class OrderWorkflow(Workflow, on_failure="finish", deadline=3600):
            order_id: int                      # the input: checked when an instance is made
            express: bool = False

            @step
            def validate(self): ...
            @step
            def charge(self, validate, ctx): ...

        engine.run(OrderWorkflow(order_id=7))

    Class keywords: `name` (by default that of the class), `on_failure` ("fail_fast", "finish" or "pause"), `deadline` (for a
    whole run, in seconds or as a timedelta), and the defaults for steps and tasks: `node_timeout` and `side_effects` ("pure",
    "recordable" or "opaque"). All but the name are inherited. `triggers` start runs automatically (docs/triggers.md).
    """

    workflow_name: ClassVar[str]
    workflow_target: ClassVar[str]
    """`package.module:Name`, by which another process imports the class; see `address` for scripts."""
    _compiled: ClassVar[Compiled]
    _triggers: ClassVar[tuple[Any, ...]] = ()
    """Instances of `Trigger`, which is imported only by classes that declare some."""

    def __init_subclass__(
        cls,
        *,
        name: str | None = None,
        on_failure: OnFailure | None = None,
        deadline: Duration | None = None,
        node_timeout: Duration | None = None,
        side_effects: SideEffects | None = None,
        triggers: Sequence[Mapping[str, Any]] = (),
        **unknown: object,
    ) -> None:
        super().__init_subclass__()
        place = caller()
        if unknown:
            raise DefinitionError(
                f"{cls.__name__}: {next(iter(unknown))}= is no keyword of a workflow class; there are name, on_failure, "
                f"deadline, node_timeout, side_effects and triggers, and every other option goes on a step or task",
                where=place,
            )
        if "__init__" in vars(cls):
            raise DefinitionError(
                f"{cls.__name__} defines __init__, but instances are also made from stored inputs; "
                f"annotate the class instead: order_id: int",
                where=place,
            )
        base: Compiled | None = getattr(cls, "_compiled", None)
        inherited = None if base is None else base.options
        options = checked_run_options(on_failure, deadline, node_timeout, side_effects, place, inherited)
        known_as = checked_workflow_name(cls.__name__ if name is None else name, place)
        cls._compiled = compiled(cls, place, options)
        cls.workflow_name = known_as
        cls.workflow_target = address_of(cls)
        cls._triggers = _declared_triggers(cls, triggers, place)
        for other in neighbours().values():
            if isinstance(other, WorkflowType) and issubclass(other, Workflow) and other is not Workflow:
                check_one_name(cls, other)

    def __init__(self, /, *positional: Any, **values: Any) -> None:
        cls = type(self)
        if cls is Workflow:
            raise TypeError("Workflow is a base: write a class with steps, `class OrderWorkflow(Workflow): ...`")
        if positional:
            raise InputError(
                f"{cls.__name__} takes its inputs by name, for example {call_of(cls)}\n"
                f"  defined at {cls._compiled.place}"
            )
        self.__dict__.update(checked(cls.__name__, cls._compiled.inputs, values, cls._compiled.place))

    @classmethod
    def workflow_graph(cls) -> Graph:
        """The compiled graph; always the same object."""
        if cls is Workflow or cls._compiled.graph is None:
            raise DefinitionError(
                f"{cls.__name__} has no steps; a method becomes one with @step",
                where=None if cls is Workflow else str(cls._compiled.place),
            )
        return cls._compiled.graph

    def workflow_input(self) -> dict[str, Any]:
        """The input of this instance as JSON data, defaults included."""
        return stored_inputs(self._compiled.inputs, self.__dict__)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstance(type(self).__name__, name)

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenInstance(type(self).__name__, name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"


def _declared_triggers(cls: type[Workflow], given: Any, place: SourceLine) -> tuple[Trigger, ...]:
    if not given:
        return ()
    from ...base.codec import json_path
    from ...triggers.definition import read_declared

    wrong: list[str] = []
    triggers = read_declared(
        given,
        cls.workflow_target,
        cls.workflow_name,
        lambda path, message: wrong.append(f"{json_path(('triggers', *path))}: {message}"),
    )
    if wrong:
        raise DefinitionError(f"the triggers of {cls.__name__} are written wrongly: {'; '.join(wrong)}", where=place)
    return triggers


def check_one_name(cls: type[Workflow], other: type[Workflow]) -> None:
    """Refuse two workflows of one name: their runs would be taken for runs of two versions of one class.

    A class that exists twice, run as `__main__` and imported, or rewritten at a prompt, has one target and is one class.
    """
    if cls.workflow_name != other.workflow_name or cls.workflow_target == other.workflow_target:
        return
    if cls._compiled.graph is not None and other._compiled.graph is not None:
        raise DefinitionError(
            f"two workflows are named {cls.workflow_name!r}: {cls.workflow_target} and {other.workflow_target} "
            f"({other._compiled.place}); give one of them another name: class {cls.__name__}(Workflow, name=...)",
            where=cls._compiled.place,
        )


def call_of(cls: type[Workflow]) -> str:
    """How an instance is made, for messages: `OrderWorkflow(order_id=...)`."""
    inputs = cls._compiled.inputs if cls is not Workflow else ()
    return f"{cls.__name__}({', '.join(f'{name}=...' for name in inputs)})"
