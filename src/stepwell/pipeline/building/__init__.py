"""Producing what is stale, as runs on the engine."""
