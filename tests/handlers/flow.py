"""Works on the flow of flow.yaml: in the test itself, and in a process that is killed.

python -m tests.handlers.flow DATABASE PORT RUN_ID
"""

from __future__ import annotations

import sys
from pathlib import Path

from stepwell import Engine, Handlers
from stepwell.base.networks import allowed_networks
from stepwell.base.secrets import Secrets
from stepwell.base.settings import checked_services
from stepwell.define.document import Document
from stepwell.handlers.access import Access

FILE = Path(__file__).with_name("flow.yaml")
PUBLIC, PRIVATE = "127.0.0.2", "127.0.0.3"
"""The first stands for what is public, the second for what must never be reached."""
KEY = "swordfish-30"


class Names:
    """Resolves every name to the public address, but `rebound.test` only once."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def resolve(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        rebound = host == "rebound.test" and self.asked.count(host) > 1
        return [PRIVATE if rebound else PUBLIC]


def handlers(port: int, names: Names) -> Handlers:
    base = f"http://service.test:{port}"
    services = {
        name: {"base_url": f"{base}/{name}", "bearer": "secret:KEY", "model": "small", "private": True}
        for name in ("llm", "chat")
    }
    access = Access(
        checked_services(services),
        Secrets(provider={"KEY": KEY}, environment={}),
        allowed_networks([PUBLIC]),
        resolve=names.resolve,
    )
    return Handlers(access=access)


def main(database: str, port: str, run_id: str) -> None:
    known = handlers(int(port), Names())
    with Engine(f"sqlite:///{database}", handlers=known, lease_seconds=2) as engine:
        document = Document.load(FILE, known)
        engine.run(document, input={"port": int(port)}, run_id=run_id, check=False, wait=60)


if __name__ == "__main__":
    main(*sys.argv[1:])
