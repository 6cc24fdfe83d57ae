"""Two pipelines that share a state: auto-blog writes blog posts, daily-podcast reads them. In Python, JSON and YAML."""
