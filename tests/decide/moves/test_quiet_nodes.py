"""Nodes that there is nothing to decide about may come as a count: limits and breaker answer as if all were there."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from assay.decide.moves.decide import decide


def counted(situation, asked):
    """Return the situation with all but these nodes as a count."""
    quiet = [view.node for view in situation.nodes if view.name not in asked]
    places = Counter((node.pool, node.site, node.rack) for node in quiet)
    return replace(situation, nodes=tuple(view for view in situation.nodes if view.name in asked), quiet_counts=places)


@pytest.mark.parametrize("hit", [1, 3, 5, 12])
def test_a_count_of_quiet_nodes_changes_no_answer(paper, hit):
    for number in range(16):
        paper.add(f"n{number:02}", rack=f"r{number // 4}")
    names = [f"n{number:02}" for number in range(hit)]
    for name in names:
        paper.fault(name, "gpu.thermal", "gpu0")
    situation = paper.situation()
    made = decide(situation)
    assert made
    assert decide(counted(situation, names)) == made


def test_only_the_nodes_asked_about_are_decided_and_the_others_still_count(paper):
    for number in range(8):
        paper.add(f"n{number}", rack="r1")
    for name in ("n0", "n1"):
        paper.fault(name, "gpu.xid.79")
        paper.step()
    paper.fault("n2", "gpu.xid.79")
    assert decide(paper.situation(), {"n7"}) == []
    (held,) = decide(paper.situation(), {"n2"})
    assert (held.node, held.remedy, held.causes[0].kind) == ("n2", "wait", "limit")
