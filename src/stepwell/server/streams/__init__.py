"""Server-sent events: what happens to runs, told as it happens, and again from where a client left off."""
