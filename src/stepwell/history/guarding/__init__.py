"""The guard: what a body may not call, and which line of code called it."""
