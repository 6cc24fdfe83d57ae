"""Whether the store takes commits."""

from __future__ import annotations

import logging
import threading
import time

from ..base.codec import encode
from ..base.words import error_text
from ..core.model import PutRecord
from ..core.store import Store

log = logging.getLogger("stepwell")

KIND = "readiness"
CHECK_SECONDS = 1.0
"""Between two checks: anybody may ask, and each check is a commit."""


PATIENCE_SECONDS = 2.0
"""For how long a caller waits for the commit. A locked store may take half a minute to refuse it."""


class Readiness:
    """Commits one small record now and then. A read would succeed on a full disk, too."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._checking = threading.Lock()
        self._check_at = 0.0
        self._is_ready = False

    def check(self) -> bool:
        """Whether the last check succeeded; checks anew if that was a while ago. No caller waits for the check of another."""
        if time.monotonic() >= self._check_at and self._checking.acquire(blocking=False):
            checking = threading.Thread(target=self._commit, name="stepwell-readiness", daemon=True)
            checking.start()
            checking.join(PATIENCE_SECONDS)
            if checking.is_alive():
                self._is_ready = False
        return self._is_ready

    def _commit(self) -> None:
        try:
            self._store.commit([PutRecord(KIND, "server", encode(self._store.now()))])
            self._is_ready = True
        except Exception as error:
            self._is_ready = False
            log.warning("not ready: the store takes no commits: %s", error_text(error))
        finally:
            self._check_at = time.monotonic() + CHECK_SECONDS
            self._checking.release()
