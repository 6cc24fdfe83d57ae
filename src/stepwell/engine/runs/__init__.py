"""Runs: their verbs, their nodes and outputs, lists of them, and the stored rows they are read from."""
