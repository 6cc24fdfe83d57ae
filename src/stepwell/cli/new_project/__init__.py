"""What `stepwell init` writes: a small project, as files that are checked and tested with everything else."""
