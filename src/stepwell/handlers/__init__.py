"""What nodes of documents do: handlers by name, built in, given by users, or brought by packages."""

from ..base.forms.problems import Problem
from .definition import Handler, handler
from .registry import Handlers

__all__ = ["Handler", "Handlers", "Problem", "handler"]
