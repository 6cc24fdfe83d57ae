"""Leaves: what every room may use, and what knows no room. `types` and `templates` are rooms of their own."""
