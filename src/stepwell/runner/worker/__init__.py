"""What a process that runs bodies does: it commits in groups, keeps its lease, and keeps house."""
