"""What `stepwell demo` runs, as files that are checked and tested with everything else."""
