"""Which code a process has, in which versions, and which runs of others it works on."""
