"""State-based pipelines: stages that make states from states, and keep them up to date."""

from __future__ import annotations

from .entity import Entity
from .pipeline import Pipeline

__all__ = ["Entity", "Pipeline"]
