"""`redis://`: one library of functions is the only writer, and applies a whole batch or nothing. See `lua/` and `library.py`."""

from .store import RedisStore

__all__ = ["RedisStore"]
