"""Which code runs for what is only named, and how the body of a node is called."""
