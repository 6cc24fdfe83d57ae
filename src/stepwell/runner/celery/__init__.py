"""Celery: messages that tell worker processes of work, and the processes that it starts, as hosts of runners.

A message is a hint ("there is work on queue Q") and never the truth, which is in the store: a broker that loses, repeats,
delays or reorders messages costs only time.
"""
