"""States and phases are data: a site that names them otherwise gets the same decisions, hooks and replays."""

from __future__ import annotations

import pytest

from assay.cli.verbs.slurm import build_hook_config
from assay.decide.state.node_entry import find_start_state
from assay.declare.loader import load_fleet
from tests.support.places import ROOT


@pytest.fixture
def renamed(tmp_path):
    """The example fleet, with the state `production` called `live` and the phase `production` called `watch`."""
    for path in (*sorted(ROOT.glob("specs/**/*.yaml")), *sorted(ROOT.glob("inventory/**/*.yml"))):
        text = path.read_text()
        to = tmp_path / path.relative_to(ROOT)
        to.parent.mkdir(parents=True, exist_ok=True)
        if "lifecycle" in path.parts:
            text = text.replace("phase: production", "phase: watch").replace("watch: [production", "watch: [watch")
            text = text.replace("production", "live")
        elif "checks" in path.parts or "schedules" in path.parts:
            text = (
                text.replace("production]", "watch]")
                .replace("[production", "[watch")
                .replace(" production,", " watch,")
            )
        to.write_text(text)
    return load_fleet(tmp_path)


def test_hooks_drain_for_the_same_faults(renamed):
    ours, theirs = load_fleet(ROOT), renamed
    assert theirs.policy.service_state == "live"
    assert "watch" in theirs.phases
    node = ours.nodes["n0005"]
    drains = build_hook_config(ours, ours.policy, node)["drains"]
    assert drains
    assert build_hook_config(theirs, theirs.policy, theirs.nodes["n0005"])["drains"] == drains
    assert find_start_state(theirs.policy, theirs.nodes["n0005"], None) == "live"
