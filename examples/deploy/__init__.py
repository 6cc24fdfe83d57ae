"""A deploy that heals. The problem: a service is stopped in the middle of its work and replaced by a version that has other
steps. What is done must not be done again, what is new must be done where that still makes sense, and nobody wants to
write a migration for runs that are under way.

`version_1.py` and `version_2.py` are the service; `__main__.py` deploys them one after the other: it copies the file into a
folder, starts it as a process, kills that half way, copies the other one over it and starts it again.

    python -m examples.deploy
    stepwell run examples.deploy:Onboarding --input customer=ada       # version 2 alone
"""

from __future__ import annotations

from examples.deploy.version_2 import Onboarding

__all__ = ["Onboarding"]
