"""Keeps sessions with BMCs open between the passes of one process. A login costs a BMC more than most reads.

BMCs hold few sessions, and note each login in a log of theirs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor

from assay.adapters.bmc.session import RedfishSession

CLOSED_AT_ONCE = 16
CLOSING_S = 5.0


class BmcSessionPool:
    """Open sessions by whom they are with. Each is lent to one reader at a time; their secrets stay in memory."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: dict[Hashable, RedfishSession] = {}
        self._is_closed = False

    def take(self, key: Hashable) -> RedfishSession | None:
        """Return a kept session and forget it here, None if there is none."""
        with self._lock:
            return self._sessions.pop(key, None)

    def keep(self, key: Hashable, session: RedfishSession) -> bool:
        """Keep a session, and close its connections. Return False if none is kept any more, or one is kept already."""
        with self._lock:
            if self._is_closed or key in self._sessions or not session.may_be_kept:
                return False
            self._sessions[key] = session
        session.close_connections()
        return True

    def close(self) -> None:
        """Log out of as many as CLOSING_S allows; the others time out."""
        until = time.monotonic() + CLOSING_S
        with self._lock:
            self._is_closed, sessions = True, list(self._sessions.values())
            self._sessions.clear()
        with ThreadPoolExecutor(CLOSED_AT_ONCE) as pool:
            list(pool.map(lambda session: session.logout() if time.monotonic() < until else None, sessions))
