"""Work that takes several commits and reads: gates, forks, collecting graphs."""
