"""Shows runs: a tree, a timeline, colours. Most of it loads Rich, so import it only when there is something to show."""
