"""What is derived from a stored run: why, replays, checkpoints, comparisons, audits."""
