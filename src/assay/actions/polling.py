"""Waiting for the world: looking often at first, then less often, and never for ever."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from assay.model.backoff import Backoff
from assay.model.errors import AssayError
from assay.redfish.errors import BmcLoginRefused

Result = TypeVar("Result")

POLL_BACKOFF = Backoff((0.1,), factor=1.3, longest_s=5.0)
REFUSAL_TOLERANCE_S = 30.0
"""For so long a BMC that starts may refuse those whom it lets in later."""


def wait_until(
    look: Callable[[], Result | None],
    deadline_s: float,
    what: str,
    where: str = "",
    refused_s: float = REFUSAL_TOLERANCE_S,
) -> Result:
    """Return the first thing that `look` sees; None and Trouble mean "not yet".

    Raises Trouble after `deadline_s` real seconds: `what` did not happen, with the last Trouble met on the way; and
    after `refused_s` in which we were not let in at all, since that mends itself only where something starts.
    """
    end, polls, refused_at = time.monotonic() + deadline_s, 0, 0.0
    while True:
        trouble = None
        try:
            if (seen := look()) is not None:
                return seen
        except AssayError as met:
            trouble = met
        refused_at = (refused_at or time.monotonic()) if isinstance(trouble, BmcLoginRefused) else 0.0
        if trouble and refused_at and time.monotonic() - refused_at > refused_s:
            raise BmcLoginRefused(f"{what}: {trouble.what}", where=trouble.where or where, fix=trouble.fix)
        if time.monotonic() > end:
            raise AssayError(f"{what}: not within {deadline_s:g} s{f'; {trouble}' if trouble else ''}", where=where)
        polls += 1
        time.sleep(POLL_BACKOFF.wait_s(polls))
