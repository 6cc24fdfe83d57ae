"""Workflows as classes: declarations are gathered and compiled to a graph."""
