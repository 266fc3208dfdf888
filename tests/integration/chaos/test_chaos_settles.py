"""How chaos ends: people do what waits for them, a controller has time while it gets on, and what hangs is told."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.ledger_entry import LedgerEntry
from tests.integration.chaos.chaos import Chaos
from tests.integration.chaos.chaos_settling import (
    HANGS_S,
    LINES,
    PASSES,
    QUIET_S,
    STACKS,
    STACKS_PLEASE,
    Bench,
    Look,
    Patience,
    stacks_of,
    unsettled,
)

AT = "2026-11-21T00:00:00+00:00"
STUCK = """
import faulthandler, sys, time
faulthandler.register(int(sys.argv[2]), open(sys.argv[1], "w"))
def is_stuck():
    print(1, flush=True)
    time.sleep(60)
is_stuck()
"""


def out(node: str) -> list[LedgerEntry]:
    """Return a node's way to triage."""
    lines = [LedgerEntry(f"e{node}", AT, "node.enrolled", node, {"pool": "p0", "state": "production"})]
    for origin, target in (("production", "draining"), ("draining", "triage")):
        told = {"from": origin, "to": target, "decision": f"{node} to {target}"}
        why = {"timing": "immediate", "rule": "a rule", "remedy": "", "because": [], "blockers": []}
        lines.append(LedgerEntry(told["decision"], AT, "decision", node, told | why))
        lines.append(LedgerEntry(f"{told['decision']}!", AT, "transition", node, told))
    return lines


@pytest.fixture
def story(tmp_path: Path) -> Chaos:
    """A fleet whose first node is ill, and two of whose rack are in triage: all that it may lack."""
    story = Chaos(tmp_path, str(tmp_path / "ledger.sqlite"), nodes=20, seed=1)
    said(story, *out("n0002"), *out("n0004"))
    return story


def word(kind: str, node: str) -> LedgerEntry:
    return LedgerEntry(f"{kind} {node}", AT, kind, node, {"who": "ann", "reason": "chaos"})


def said(story: Chaos, *entries: LedgerEntry) -> None:
    ledger = Ledger.open(story.place)
    ledger.append(*entries)
    ledger.close()


@pytest.mark.slow
def test_a_rack_that_may_lack_no_other_node_settles_with_people(story):
    with story.nursery():
        story.settle()
    assert (story.wrongs(), story.world.ill()) == ([], {})


def test_people_take_what_waits_in_triage_onto_the_bench_once(story):
    bench = Bench(story.world, story.place, word)
    said(story, word("hold", "n0002"))
    story.world.fall_ill("n0002", "psu.failed", "hand")
    lines = [bench.work() for _ in range(3)]
    assert lines == [11, 14, 14]
    assert sorted((one.kind, one.node) for one in bench.entries[-3:]) == [
        ("certified", "n0002"),
        ("certified", "n0004"),
        ("release", "n0002"),
    ]
    assert set(story.world.ill()) == {"n0000"}


def test_people_say_again_what_a_busy_ledger_did_not_take(story, monkeypatch):
    bench = Bench(story.world, story.place, word)
    with monkeypatch.context() as busy:
        busy.setattr(Ledger, "append", lambda *_: (_ for _ in ()).throw(AssayError("the ledger is busy")))
        assert bench.work() == 10
    assert [bench.work(), bench.work()] == [10, 12]


def test_what_does_not_settle_says_why(story):
    said(story, LedgerEntry("i", AT, "effect.intent", "n0004", intent("dossier")), *out("n0000"))
    lines = list(unsettled(story.policy, Bench(story.world, story.place, word)))
    assert lines[0] == "still ill: {}", "people have mended it"
    assert [line.split(" since")[0] for line in lines if " is in " in line] == [
        f"{node} is in triage" for node in ("n0002", "n0004", "n0000")
    ]
    assert "  dossier is intent since" in "\n".join(lines)
    assert "transition n0000" in lines[lines.index("of all 16 lines:") - 1], "a node's own lines stand below it"
    assert lines[-1].startswith("    16 ")


def intent(action: str) -> dict[str, object]:
    return {"effect": "x", "action": action, "decision": "d", "reason": "", "before": {}, "params": {}, "by": {}}


def test_where_a_controller_hangs_is_told(tmp_path):
    words = [sys.executable, "-c", STUCK, str(tmp_path / STACKS), str(int(STACKS_PLEASE))]
    with subprocess.Popen(words, stdout=-1) as stuck:
        assert stuck.stdout
        stuck.stdout.readline()
        assert "in is_stuck" in stacks_of(tmp_path, stuck.pid)
        stuck.kill()


@pytest.mark.parametrize(
    ("looks", "over"),
    [
        ([(10, 500, QUIET_S - 1)], False),
        ([(10, PASSES - 1, 3 * QUIET_S)], False),
        ([(10, PASSES, QUIET_S + 1)], True),
        ([(11, PASSES, QUIET_S + 1)], False),
        ([(11, PASSES, QUIET_S + 1), (11, 2 * PASSES, 2 * QUIET_S + 2)], True),
        ([(10, 1, HANGS_S - 1), (10, 1, HANGS_S + 1)], False),
        ([(10, 1, 1.0), (10, 1, HANGS_S + 2)], True),
        ([(10 + 4 * LINES, 1, 1.0)], False),
        ([(11 + 4 * LINES, 1, 1.0)], True),
    ],
)
def test_a_controller_has_time_while_there_is_progress(looks, over):
    patience = Patience(nodes=4, first=Look(10, 0, 0.0))
    assert [patience.over(Look(*one)) for one in looks][-1] == over
