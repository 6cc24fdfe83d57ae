"""What the statements of a template mean: text, `{{ }}`, `if` and `for`, and nothing else."""

from __future__ import annotations

from typing import Any

from jinja2 import nodes

from .errors import Missing, TemplateError
from .expressions import Expressions, name_of
from .frames import Frame, Write
from .limits import MAX_NESTING, Budget
from .parsing import described
from .values import described as shown
from .values import written


class Statements(Expressions):
    """Compiles the tree of a template."""

    def statements(self, body: list[nodes.Node]) -> Write:
        compiled: list[Write] = []
        self.depth += 1
        for node in body:
            if isinstance(node, nodes.Output):
                compiled += [self._output(each) for each in node.nodes]
            elif isinstance(node, nodes.If):
                compiled.append(self._if(node))
            elif isinstance(node, nodes.For):
                compiled.append(self._for(node))
            else:
                raise self.refused(node, f"there is no statement for {name_of(node)}; there are for, if and raw")
            if self.depth > MAX_NESTING:
                raise self.refused(node, f"it is nested deeper than {MAX_NESTING} levels")
        self.depth -= 1
        if len(compiled) == 1:
            return compiled[0]

        def run(frame: Frame, out: list[str]) -> None:
            for each in compiled:
                each(frame, out)

        return run

    def _output(self, node: nodes.Node) -> Write:
        self.size += 1
        if isinstance(node, nodes.TemplateData):
            data = node.data
            self.size += len(data) // 16

            def put(frame: Frame, out: list[str]) -> None:
                out.append(data)

            return put
        value, words, line = self.expression(node), described(node), node.lineno

        def write(frame: Frame, out: list[str]) -> None:
            try:
                result = value(frame)
                if result is None and words:
                    raise Missing(f"{words} is null: say what stands for it with {words} | default(...)")
                out.append(written(result, frame.budget))
            except TemplateError as error:
                error.line = error.line or line
                raise

        return write

    def _if(self, node: nodes.If) -> Write:
        branches = [(self.expression(each.test), self.statements(each.body)) for each in (node, *node.elif_)]
        otherwise = self.statements(node.else_)

        def run(frame: Frame, out: list[str]) -> None:
            for holds, body in branches:
                if holds(frame):
                    return body(frame, out)
            return otherwise(frame, out)

        return run

    def _for(self, node: nodes.For) -> Write:
        if node.recursive:
            raise self.refused(node, "a loop cannot be recursive")
        items = self.expression(node.iter)
        names = self._targets(node)
        otherwise = self.statements(node.else_)
        before, bound = self.size, len(self.bound)
        self.bound += [*names, "loop"]
        test = None if node.test is None else self.expression(node.test)
        body = self.statements(node.body)
        del self.bound[bound:]
        cost = 1 + self.size - before
        self.size = before + 1

        def run(frame: Frame, out: list[str]) -> None:
            budget = frame.budget
            loop_items = _looped(items(frame), budget)
            inner = Frame(frame.scope, budget, dict(frame.local))
            local = inner.local
            if test is not None:
                kept = []
                for each in loop_items:
                    budget.spend(cost)
                    _bind(local, names, each)
                    if test(inner):
                        kept.append(each)
                loop_items = kept
            for place, each in enumerate(loop_items):
                budget.spend(cost)
                _bind(local, names, each)
                local["loop"] = {
                    "index": place + 1,
                    "index0": place,
                    "first": place == 0,
                    "last": place == len(loop_items) - 1,
                    "length": len(loop_items),
                }
                body(inner, out)
            if not loop_items:
                otherwise(frame, out)

        return run

    def _targets(self, node: nodes.For) -> list[str]:
        target = node.target
        items = target.items if isinstance(target, nodes.Tuple) else [target]
        if not all(isinstance(each, nodes.Name) for each in items):
            raise self.refused(node, "a loop needs a name, or several: {% for key, value in ... %}")
        names = [each.name for each in items if isinstance(each, nodes.Name)]
        if isinstance(target, nodes.Tuple) and len(names) == 1:
            raise self.refused(node, "a loop over pairs needs two names")
        return names


def _looped(value: Any, budget: Budget) -> list[Any]:
    if type(value) is dict:
        value = sorted(value)
    if type(value) is not list:
        raise TemplateError(f"a loop needs a list, or an object for its keys, not {shown(value)}")
    budget.spend(1)
    return value


def _bind(local: dict[str, Any], names: list[str], value: Any) -> None:
    if len(names) == 1:
        local[names[0]] = value
        return
    if type(value) is not list or len(value) != len(names):
        needed = f"lists of {len(names)}, as `| items` gives"
        raise TemplateError(f"a loop with {len(names)} names needs {needed}, not {shown(value)}")
    local.update(zip(names, value, strict=True))
