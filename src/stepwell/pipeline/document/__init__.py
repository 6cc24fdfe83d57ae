"""Pipelines as JSON or YAML (`"mode": "pipeline"`), read into the same model as those written in Python."""
