"""What is derived from stored runs: why, replays, checkpoints, comparisons, audits, workers."""
