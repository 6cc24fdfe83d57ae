"""What is stale, and why. Pure: facts in, standings out."""
