"""How long things take in a replay: what a plan assumes where nothing is recorded.

Plan and trends do not import each other; this module joins them.
"""

from __future__ import annotations

from assay.decide.plan.assumptions import ACTION_HOURS, PERSON_HOURS, SUITE_HOURS
from assay.decide.replay.assumed_durations import AssumedDuration, ReplayDurations


def list_replay_durations() -> ReplayDurations:
    """Return the assumed durations, with their sources."""
    actions = {name: AssumedDuration(assumed.hours, assumed.source) for name, assumed in ACTION_HOURS.items()}
    suite = AssumedDuration(SUITE_HOURS.hours, SUITE_HOURS.source)
    return ReplayDurations(actions, suite, AssumedDuration(PERSON_HOURS.hours, PERSON_HOURS.source))
