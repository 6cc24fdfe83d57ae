"""What all stores share: stored numbers, which ops form a set, payload and value rules, and verdicts on ops."""
