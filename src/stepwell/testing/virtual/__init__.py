"""Runs in virtual time: waiting takes none, and a day of retries is over at once."""
