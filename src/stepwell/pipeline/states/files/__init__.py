"""States as files below a root, with a `.manifest.json` beside them."""
