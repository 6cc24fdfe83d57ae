"""What `--json`, the HTTP API and `Client` give back: each JSON object once, as a TypedDict, with what each of its fields says.

A name and the casing of a key are a promise: new keys may come, none changes or goes. The functions that make these objects are
annotated with them, so mypy checks every key; the OpenAPI document is made of them (`server/openapi.py`). Only the server
imports this room when it runs: pydantic wants the TypedDict of `typing_extensions`, which it brings along, before Python 3.12.
"""
