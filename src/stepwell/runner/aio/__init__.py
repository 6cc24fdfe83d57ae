"""The same engine for coroutines: every call that may wait is awaited, and is made in a thread, never on the loop."""
