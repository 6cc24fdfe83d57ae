"""Where states are kept: the port, files with manifests, a database."""
