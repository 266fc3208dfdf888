"""Waiting for the world: looking often at first, then less often, and never for ever."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from assay.model.errors import Trouble

Seen = TypeVar("Seen")

FIRST_PAUSE_S, LONGEST_PAUSE_S, GROWTH = 0.1, 5.0, 1.3


def wait_until(look: Callable[[], Seen | None], deadline_s: float, what: str, where: str = "") -> Seen:
    """Return the first thing that `look` sees; None and Trouble mean "not yet".

    Raises Trouble after `deadline_s` real seconds: `what` did not happen, with the last Trouble met on the way.
    """
    end, pause, last = time.monotonic() + deadline_s, FIRST_PAUSE_S, ""
    while True:
        try:
            if (seen := look()) is not None:
                return seen
            last = ""
        except Trouble as trouble:
            last = f"; {trouble}"
        if time.monotonic() > end:
            raise Trouble(f"{what}: not within {deadline_s:g} s{last}", where=where)
        time.sleep(pause)
        pause = min(pause * GROWTH, LONGEST_PAUSE_S)
