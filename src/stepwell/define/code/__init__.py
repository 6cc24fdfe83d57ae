"""Finds the code behind names, and calls the bodies of nodes."""
