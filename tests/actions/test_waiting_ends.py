"""Waiting for the world ends when it comes, when the time is over, and when we are not let in for long."""

from __future__ import annotations

import pytest

from assay.actions.patience import wait_until
from assay.model.errors import Trouble
from assay.observe.refusal import NoAnswer, NotLetIn


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
    assert wait_until(looks(None, NoAnswer("connection refused"), "here"), 5, "it comes") == "here"


def test_a_bmc_that_starts_may_refuse_us_for_a_moment():
    assert wait_until(looks(NotLetIn("who are you"), "here"), 5, "it comes", refused_s=1) == "here"


def test_credentials_that_were_revoked_end_the_waiting_long_before_its_deadline():
    refused = looks(NotLetIn("the BMC refuses the user or the password"))
    with pytest.raises(NotLetIn, match="the version changes: the BMC refuses the user or the password"):
        wait_until(refused, 3600, "the version changes", refused_s=0.15)


def test_the_deadline_tells_the_last_trouble():
    with pytest.raises(Trouble, match="it comes: not within"):
        wait_until(looks(NoAnswer("no route")), 0.15, "it comes")
