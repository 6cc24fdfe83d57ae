"""Documents: workflows as JSON or YAML. docs/documents.md teaches them."""

from ...base.forms.problems import Problem
from .document import Document
