"""Recorded runs: what a replay needs of them, cassettes, checkpoints, differences."""
