"""A chain of steps by DBOS, in an environment of its own: `python bench/dbos_chain.py URL NODES ROUNDS` prints the
seconds that a node took, for each round.

It does not know Stepwell, and Stepwell does not know it.
"""

import logging
import sys
import time

from dbos import DBOS

logging.disable(logging.WARNING)


@DBOS.step()
def nothing() -> None:
    return None


@DBOS.workflow()
def chain(nodes: int) -> None:
    for _ in range(nodes):
        nothing()


def main(url: str, nodes: int, rounds: int) -> None:
    DBOS(config={"name": "chain", "system_database_url": url, "run_admin_server": False, "log_level": "ERROR"})
    DBOS.launch()
    chain(10)
    for _ in range(rounds):
        began = time.perf_counter()
        chain(nodes)
        print((time.perf_counter() - began) / nodes, flush=True)
    DBOS.destroy()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
