"""Waiting for the world: looking often at first, then less often, and never for ever."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from assay.model.errors import Trouble
from assay.observe.refusal import NotLetIn

Seen = TypeVar("Seen")

FIRST_PAUSE_S, LONGEST_PAUSE_S, GROWTH = 0.1, 5.0, 1.3
REFUSED_S = 30.0
"""For so long a BMC that starts may refuse those whom it lets in later."""


def wait_until(
    look: Callable[[], Seen | None], deadline_s: float, what: str, where: str = "", refused_s: float = REFUSED_S
) -> Seen:
    """Return the first thing that `look` sees; None and Trouble mean "not yet".

    Raises Trouble after `deadline_s` real seconds: `what` did not happen, with the last Trouble met on the way; and
    after `refused_s` in which we were not let in at all, since that mends itself only where something starts.
    """
    end, pause, refused_at = time.monotonic() + deadline_s, FIRST_PAUSE_S, 0.0
    while True:
        trouble = None
        try:
            if (seen := look()) is not None:
                return seen
        except Trouble as met:
            trouble = met
        refused_at = (refused_at or time.monotonic()) if isinstance(trouble, NotLetIn) else 0.0
        if trouble and refused_at and time.monotonic() - refused_at > refused_s:
            raise NotLetIn(f"{what}: {trouble.what}", where=trouble.where or where, fix=trouble.fix)
        if time.monotonic() > end:
            raise Trouble(f"{what}: not within {deadline_s:g} s{f'; {trouble}' if trouble else ''}", where=where)
        time.sleep(pause)
        pause = min(pause * GROWTH, LONGEST_PAUSE_S)
