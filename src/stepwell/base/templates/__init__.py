"""The one expression language: templates in documents, expressions in `compute`, conditions. docs/expressions.md teaches it.

    compile_template("Summarise: {{ fetch.result }}").render({"fetch": NodeOutput({"result": "…"})})
    compile_expression("fetch.status_code < 400").evaluate(scope)

Jinja's parser reads them; what they mean is written here, over JSON values only and with limits that need no clock. Nothing
of it is loaded before a template is compiled that is more than names and fields.
"""

from .config import Config, compile_config
from .errors import Missing, TemplateError
from .frames import Reference, Scope
from .limits import parsing_at_most
from .template import Expression, Template, compile_condition, compile_expression, compile_template, is_template
from .values import NodeOutput, SkippedOutput, TextWithFields
