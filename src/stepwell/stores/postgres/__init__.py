"""`postgresql://`: runs on a PostgreSQL server, for many processes and machines."""
