"""Refuses pytest's options and marks that excuse a failed check, or run it again until it passes.

A check is judged once. Only collecting evidence may be repeated.
"""

from __future__ import annotations

import pytest

from assay.model.errors import AssayError
from assay.validate.judging.evidence_cache import UnjudgeableCheck

RERUN_OPTIONS = ("reruns", "retries", "force_flaky")
"""Options of pytest-rerunfailures, pytest-retry and flaky; an ini file can set the first two."""
REFUSED_MARKS = {
    "xfail": "xfail does not exist here; a known issue is data, not code",
    "flaky": "no check runs again until it passes; only collecting is retried",
}


def refuse_rerun_options(config: pytest.Config) -> None:
    """Raise AssayError where an option would run failed checks again."""
    for name in RERUN_OPTIONS:
        if config.getoption(name, default=None) or _is_in_ini(config, name):
            what = f"`{name}` is set: failed checks would run again until they pass"
            raise AssayError(what, fix="unset it for suites; collect again with `assay observe`, then judge once")


def _is_in_ini(config: pytest.Config, name: str) -> bool:
    try:
        return bool(config.getini(name))
    except ValueError:  # no plugin has registered it, so it has no effect
        return False


def refuse_excusing_marks(item: pytest.Item) -> None:
    """Raise UnjudgeableCheck for an item that is marked to be excused or to run again."""
    for name, reason in REFUSED_MARKS.items():
        if item.get_closest_marker(name):
            raise UnjudgeableCheck(reason)
