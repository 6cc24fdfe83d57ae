"""Benchmarks: `make bench` prints the tables and writes RESULTS.md. Every figure stands beside its floor, from the same run."""
