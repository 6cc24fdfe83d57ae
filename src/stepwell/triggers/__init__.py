"""Triggers: what starts runs by itself. A schedule, a webhook, the end of another run."""
