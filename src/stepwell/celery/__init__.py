"""Workflows in a Celery application: `stepwell.celery.install(app, "postgresql://db/shop", workflows=[OrderWorkflow])`."""

from __future__ import annotations

from .install import Installed, install

__all__ = ["Installed", "install"]
