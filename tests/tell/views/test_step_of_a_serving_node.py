"""Who acts next on a node that serves, and on which neither a ticket nor a decision waits."""

from __future__ import annotations

import pytest

from assay.decide.rollouts.rollout_history import ROLLOUTS, Rollout
from assay.model.entries.node_entries import MoveEntry
from assay.model.entries.rollouts import RolloutGroup, RolloutPausedEntry, RolloutStartedEntry
from assay.tell.views.next_step import NOTHING_NEXT, find_next_step
from tests.decide.conftest import Paper, catalog, policy, profiles  # noqa: F401 — the policy and the catalogue are real

AT = "2026-11-21T12:00:00+00:00"
STARTED = RolloutStartedEntry("1a2b3c4d5e", "a1", "b2", (RolloutGroup("zap", "bios 1 → 2", "a1", ("n1", "n2")),))


@pytest.fixture
def paper(policy, catalog, profiles) -> Paper:  # noqa: F811
    paper = Paper(policy, catalog, profiles)
    for name in ("n1", "n2", "n3"):
        paper.add(name)
    return paper


def roll(*more) -> Rollout:
    entries = [
        content.make_entry(f"e{number}", AT, node) for number, (content, node) in enumerate(((STARTED, ""), *more))
    ]
    rollout = ROLLOUTS.fold(entries).find_active()
    assert rollout is not None
    return rollout


def test_drift_that_a_rollout_brings_waits_for_the_rollout_and_says_for_what(paper):
    for name in ("n1", "n2", "n3"):
        paper.fault(name, "firmware.drift")

    def step(name: str, *more):
        return find_next_step(paper.story(name), paper.policy, {}, None, roll(*more))

    assert step("n2").line == "rollout 1a2b3c4d: brings the change in its wave (its next wave is due)"
    ordered = (MoveEntry("zap", "rollout 1a2b3c4d", "bios", rollout="1a2b3c4d5e"), "n1")
    assert step("n2", ordered).detail == "its next wave waits for the proof of n1"
    assert step("n2", (RolloutPausedEntry("1a2b3c4d5e", "ann", "look first"), "")).detail == "it is paused: look first"
    assert step("n3").who == "assay", "the rollout is not for it"
    paper.fault("n2", "gpu.nvlink.down", "gpu1")
    assert step("n2").who == "assay", "the rollout does not mend that"


def test_what_a_node_out_of_service_must_pass_is_its_next_step(paper):
    paper.add("n4", "production-reboot")
    step = find_next_step(paper.story("n4"), paper.policy, {})
    assert step.line == "assay: tests it: test and production must pass before it goes to production"


def test_a_node_that_nothing_reads_waits_for_engineers(paper):
    step = find_next_step(paper.story("n1"), paper.policy, {}, unread="its probe did not answer")
    assert step.line == "engineers: find out why nothing reads the node: assay observe (its probe did not answer)"
    assert find_next_step(paper.story("n1"), paper.policy, {}) == NOTHING_NEXT
