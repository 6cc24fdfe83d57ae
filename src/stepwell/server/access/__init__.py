"""Access control: tokens, browser sessions, and the guard that every request passes."""
