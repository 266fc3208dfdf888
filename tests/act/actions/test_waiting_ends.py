"""Waiting for the world ends when it comes, when the time is over, and when we are not let in for long."""

from __future__ import annotations

import pytest

from assay.act.actions.action import wait_until
from assay.adapters.bmc.errors import BmcLoginRefused, BmcUnreachable
from assay.model.errors import AssayError


def looks(*answers: object):
    """Return a look that gives or raises these in turn, the last one for ever."""
    left = list(answers)

    def look() -> object:
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    return look


def test_silence_and_trouble_mean_not_yet():
    assert wait_until(looks(None, BmcUnreachable("connection refused"), "here"), 5, "it comes") == "here"


def test_a_bmc_that_starts_may_refuse_us_for_a_moment():
    assert wait_until(looks(BmcLoginRefused("who are you"), "here"), 5, "it comes", refused_s=1) == "here"


def test_credentials_that_were_revoked_end_the_waiting_long_before_its_deadline():
    refused = looks(BmcLoginRefused("the BMC refuses the user or the password"))
    with pytest.raises(BmcLoginRefused, match="the version changes: the BMC refuses the user or the password"):
        wait_until(refused, 3600, "the version changes", refused_s=0.15)


def test_the_deadline_tells_the_last_trouble():
    with pytest.raises(AssayError, match="it comes: not within"):
        wait_until(looks(BmcUnreachable("no route")), 0.15, "it comes")
