"""The guard: what a body may not call, and whose line it is that calls it."""
