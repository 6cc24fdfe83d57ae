"""Triggers start runs automatically: by a schedule, a webhook, the end of another run, a new state.

`definition` is what people write, `schedule` and `deciding` say when it fires (pure), `state` is stored, `firing` starts runs,
`book` adds and changes triggers, `webhook` receives requests.
"""

from .definition import Trigger

__all__ = ["Trigger"]
