"""Recorded runs: what a replay needs, cassettes, checkpoints, differences."""
