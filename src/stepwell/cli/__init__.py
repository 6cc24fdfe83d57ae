"""The command line: `stepwell run orders:OrderWorkflow --input order_id=7`."""

from .app import main

__all__ = ["main"]
