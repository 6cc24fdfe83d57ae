"""What nodes of documents do: handlers by name, built in, given by users, or brought by packages."""

from .registry import Handler, Handlers, Problem, handler

__all__ = ["Handler", "Handlers", "Problem", "handler"]
