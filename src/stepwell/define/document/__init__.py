"""Documents: workflows as JSON or YAML. docs/documents.md teaches them."""

from .document import Document, problems_in
from .problems import DocumentError, Problem

__all__ = ["Document", "DocumentError", "Problem", "problems_in"]
