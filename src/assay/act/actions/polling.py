"""Waits until something can be seen in the world: polls often at first, then less often, up to a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from assay.adapters.bmc.errors import BmcLoginRefused
from assay.model.backoff import Backoff
from assay.model.errors import AssayError

Result = TypeVar("Result")

POLL_BACKOFF = Backoff((0.1,), factor=1.3, longest_s=5.0)
REFUSAL_TOLERANCE_S = 30.0
"""How long a BMC that starts may refuse a login that it accepts later."""


def wait_until(
    look: Callable[[], Result | None],
    deadline_s: float,
    what: str,
    where: str = "",
    refused_s: float = REFUSAL_TOLERANCE_S,
) -> Result:
    """Return the first result of `look`. None and AssayError mean "not yet". `what` says what is expected.

    Raises AssayError after `deadline_s` real seconds, with the last error of `look`. Raises BmcLoginRefused after
    `refused_s` of refused logins: only a BMC that starts gets over those.
    """
    ends_at, polls, refused_at = time.monotonic() + deadline_s, 0, 0.0
    while True:
        error = None
        try:
            if (seen := look()) is not None:
                return seen
        except AssayError as met:
            error = met
        refused_at = (refused_at or time.monotonic()) if isinstance(error, BmcLoginRefused) else 0.0
        if error and refused_at and time.monotonic() - refused_at > refused_s:
            raise BmcLoginRefused(f"{what}: {error.what}", where=error.where or where, fix=error.fix)
        if time.monotonic() > ends_at:
            raise AssayError(f"{what}: not within {deadline_s:g} s{f'; {error}' if error else ''}", where=where)
        polls += 1
        time.sleep(POLL_BACKOFF.wait_s(polls))
