"""What a process that runs bodies does: it decides what to claim and to commit, keeps its lease, and keeps house."""
