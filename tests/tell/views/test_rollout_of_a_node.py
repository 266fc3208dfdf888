"""Which rollout `assay explain` shows of a node that is in none any more: only one that left it without the change."""

from __future__ import annotations

from typing import Any

import pytest

from assay.decide.rollouts.rollout_history import ROLLOUTS
from assay.model.entries.rollouts import (
    RolloutAbortedEntry,
    RolloutGroup,
    RolloutStartedEntry,
    RolloutSupersededEntry,
)
from assay.tell.views import node_sync

AT = "2026-11-21T12:00:00+00:00"
STARTED = RolloutStartedEntry("r1", "a1", "b2", (RolloutGroup("zap", "bios 1 → 2", "a1", ("n1", "n2")),))


def see(monkeypatch: pytest.MonkeyPatch, *contents: Any) -> node_sync.RolloutOfNode | None:
    """Return what is shown of n2 after these entries."""
    entries = [content.make_entry(f"e{number}", AT) for number, content in enumerate((STARTED, *contents))]
    monkeypatch.setattr(node_sync, "_read_rollouts", lambda source: ROLLOUTS.fold(entries))
    return node_sync.find_node_rollout(None, "n2")  # type: ignore[arg-type]  # nothing else is read of it


def test_a_node_that_a_revert_leaves_alone_is_shown_in_no_rollout(monkeypatch: pytest.MonkeyPatch) -> None:
    """The canary n1 goes on in r2, and n2 has what git wants again."""
    r2 = RolloutStartedEntry("r2", "b2", "c3", (RolloutGroup("zap", "bios 2 → 1", "b2", ("n1",), "replaced"),))
    over = RolloutSupersededEntry("r1", "r2", "commit c3: 1 node of it go on in rollout r2, 1 node need nothing more")
    ended = RolloutAbortedEntry("r2", "ann", "enough")
    assert see(monkeypatch, over) is None
    assert see(monkeypatch, r2, over, ended) is None


def test_a_node_that_an_aborted_rollout_left_is_shown_with_why(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = see(monkeypatch, RolloutAbortedEntry("r1", "ann", "a bad image"))
    assert shown is not None
    assert (shown.id, shown.progress, shown.why) == ("r1", "left alone", "over: aborted by ann: a bad image")
