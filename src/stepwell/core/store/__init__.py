"""What a store is: the port, the rules that all stores share, and the memory store, which is the specification."""

from .port import Store

__all__ = ["Store"]
