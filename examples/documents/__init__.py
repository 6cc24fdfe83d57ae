"""Workflows as documents, and stand-ins for the services that they call."""
