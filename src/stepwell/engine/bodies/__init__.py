"""How bodies run: in threads, on a loop, in processes; what `ctx` offers them, and what they print and record."""
