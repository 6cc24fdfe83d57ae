"""A deterministic simulator: the production kernel, runner logic and memory store under every fault, from one seed."""
