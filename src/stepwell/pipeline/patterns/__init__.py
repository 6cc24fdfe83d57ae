"""Patterns of paths, the names that variables may stand for, and the one way to join a path to a root."""
