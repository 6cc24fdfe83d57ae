"""How bodies run: in threads, on a loop, in processes; what they are told, and what they print and record."""
