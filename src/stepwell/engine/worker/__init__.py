"""What a worker process does: run bodies, commit in groups, keep its lease, and do its regular duties."""
