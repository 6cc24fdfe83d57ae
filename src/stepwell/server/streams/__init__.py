"""Server-sent events, which a client can resume."""
