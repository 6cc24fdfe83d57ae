"""The engine for coroutines: every call that may wait is awaited, and made in a thread, never on the loop."""
