"""Documents: workflows as JSON or YAML. docs/documents.md teaches them."""

from .document import Document
from .problems import DocumentError, Problem
