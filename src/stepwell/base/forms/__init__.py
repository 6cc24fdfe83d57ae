"""Forms: JSON that people write. `problems` is what can be wrong with one, `reading` reads one as a pydantic model."""
