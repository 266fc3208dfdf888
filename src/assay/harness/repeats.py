"""Judging is done once: what would run a check again until it passes is refused, whichever plugin offers it.

What may be tried again is collecting (`assay observe`), of which each document says when it was.
"""

from __future__ import annotations

import pytest

from assay.harness.silence import Unjudgeable
from assay.model.errors import Trouble

OPTIONS = ("reruns", "retries", "force_flaky")
"""Of pytest-rerunfailures, pytest-retry and flaky; the first two may stand in an ini file too."""
MARKS = {
    "xfail": "xfail does not exist here; a known issue is data, not code",
    "flaky": "nothing is judged again until it passes; retries belong to collecting",
}


def refuse_repeats(config: pytest.Config) -> None:
    """Raise Trouble where this session shall run failed checks again."""
    for name in OPTIONS:
        if config.getoption(name, default=None) or _in_a_file(config, name):
            what = f"`{name}` is set: failed checks would be judged again until they pass"
            raise Trouble(what, fix="leave it out for suites; collect again with `assay observe`, then judge once")


def _in_a_file(config: pytest.Config, name: str) -> bool:
    try:
        return bool(config.getini(name))
    except ValueError:  # no plugin knows it, so whatever a file says, nothing comes of it
        return False


def refuse_marks(item: pytest.Item) -> None:
    """Raise Unjudgeable for an item that is marked to be excused or judged again."""
    for name, why in MARKS.items():
        if item.get_closest_marker(name):
            raise Unjudgeable(why)
