"""The engine as a specification, pure: graphs, the model, the kernel, and the memory store, which all other stores equal."""
