"""The HTTP service: `Service` is what the routes work with, `make_app` the application, `serve` runs it."""
