"""What people write into the ledger, folded: holds with an end, moves, parts replaced, decisions withdrawn."""

from __future__ import annotations

import pytest

from assay.decide.state.outstanding_effects import list_outstanding_effects
from assay.model.ledger_entry import LedgerEntry


def write(paper, kind, **body):
    entry = LedgerEntry(f"{kind}-{len(paper.log)}", paper.now.isoformat(), kind, "n1", body)
    paper.write(entry)
    paper.later(seconds=1)
    return entry.id


def waiting(paper):
    """Let a hot GPU wait for a job, cordoned; return the decision."""
    paper.add("n1")
    paper.jobs["n1"] = ("train",)
    paper.fault("n1", "gpu.thermal", "gpu3")
    (made,) = paper.step()
    paper.settle("n1")
    return made.id


def test_a_hold_says_until_when(paper):
    paper.add("n1")
    write(paper, "hold", who="ann", reason="bisecting", until="2026-11-22T10:00:00+01:00")
    assert paper.story("n1").hold.until == "2026-11-22T09:00:00.000000+00:00"
    write(paper, "hold", who="ann", reason="bisecting")
    assert paper.story("n1").hold.until == ""


@pytest.mark.parametrize("kind", ["move", "zap.asked"])
def test_a_move_is_remembered_until_the_node_is_there(paper, kind):
    paper.add("n1", "seatrial")
    asked = write(paper, kind, who="ann", reason="new BIOS", to="zap")
    known = paper.story("n1").move_request
    assert (known.id, known.to, known.who, known.reason, known.now) == (asked, "zap", "ann", "new BIOS", False)
    paper.pass_all("n1")
    paper.step()
    assert (paper.story("n1").state, paper.story("n1").move_request) == ("zap", None)


def test_the_last_move_counts_and_one_to_where_the_node_is_takes_it_back(paper):
    paper.add("n1")
    write(paper, "move", who="ann", reason="new BIOS", to="zap")
    write(paper, "move", who="bob", reason="broken fan", to="draining", now=True)
    assert (paper.story("n1").move_request.to, paper.story("n1").move_request.now) == ("draining", True)
    write(paper, "move", who="bob", reason="not after all", to="production")
    assert paper.story("n1").move_request is None


def test_what_is_withdrawn_no_longer_waits_and_its_cordon_is_undone(paper):
    decision = waiting(paper)
    by = write(paper, "decision.withdrawn", decision=decision, reason="the fan was blocked", who="ann")
    story = paper.story("n1")
    assert (story.pending, story.withdrawn.decision) == (None, decision)
    assert [(one.decision, one.action, one.reason) for one in list_outstanding_effects(paper.policy, story)] == [
        (by, "uncordon", "the fan was blocked")
    ]
    assert paper.settle("n1") == ["uncordon"]
    assert paper.settle("n1") == []


def test_a_withdrawal_of_something_else_changes_nothing(paper):
    waiting(paper)
    before = paper.story("n1")
    write(paper, "decision.withdrawn", decision="of-long-ago", reason="late")
    assert paper.story("n1") == before


def test_a_part_replaced_starts_ladder_and_repairs_anew_and_keeps_the_history_of_the_place(paper):
    paper.add("n1")
    paper.fault("n1", "gpu.xid.79", "gpu2")
    paper.step()
    paper.settle("n1")
    paper.pass_all("n1")
    paper.step()
    moves = paper.story("n1").transitions
    write(paper, "part.replaced", old_serial="S1", new_serial="S2", who="ann")
    story = paper.story("n1")
    assert story.transitions == moves
    assert story.repairs[-1].kind == "replaced"
    paper.later(hours=1)
    paper.fault("n1", "gpu.xid.79", "gpu2")
    assert [one.to_state for one in paper.step()] == ["production-reboot"], "the first rung again"
