"""A workflow as a class: what its body says, gathered and compiled to a graph."""
