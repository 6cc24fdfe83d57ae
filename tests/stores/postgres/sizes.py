"""How large a proof is: a few seconds of it in `make test`, all of it in `make prove WHAT=postgres`."""

import os

FULL = os.environ.get("STEPWELL_PROVE") == "postgres"


def size(usual: int, full: int) -> int:
    return full if FULL else usual
