"""`redis://`: one library of functions is the only writer, and applies a whole batch or nothing. See `lua/`."""
