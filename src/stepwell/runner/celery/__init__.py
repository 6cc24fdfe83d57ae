"""Celery: its workers host runners, and messages tell them of work.

A message is only a hint ("there is work on queue Q"); the truth is in the store. A broker that loses, repeats, delays or
reorders messages costs only time.
"""
