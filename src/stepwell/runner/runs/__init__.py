"""What people hold: a run, its nodes and what can be asked of it; lists of runs; and what they are read from."""
