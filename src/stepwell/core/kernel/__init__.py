"""Pure decisions: rows and events in, ops out. No clock, no I/O, no logging."""
