"""Triggers: what starts runs by itself. A schedule, a webhook, the end of another run.

`definition` is what people write, `schedule` and `deciding` when it fires (pure), `state` what is kept, `firing` who does it,
`book` how triggers are added and changed, `webhook` how requests come in.
"""

from .definition import Trigger
from .kinds import TriggerError

__all__ = ["Trigger", "TriggerError"]
