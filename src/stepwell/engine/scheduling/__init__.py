"""What a worker claims and commits next: plain decisions, driven by events, without threads, clocks or stores."""
