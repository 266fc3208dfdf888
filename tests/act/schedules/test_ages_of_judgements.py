"""How old what is known of nodes is: the same as reading every outcome would tell."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import product
from random import Random

from assay.ledger.newest.counts import CheckAge
from assay.ledger.store import Ledger
from assay.model.outcome import Outcome, SuiteRun

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
CHECKS, PARTS, NODES = ("suites/a.py::test_x", "suites/a.py::test_y"), ("", "/gpu0", "/gpu1"), ("n1", "n2")
VERDICTS = ("pass", "fail", "error", "skip")
Told = tuple[str, str, str, str, int]


def outcome(told: Told) -> Outcome:
    check, part, node, verdict, minute = told
    at = (NOON + timedelta(minutes=minute)).isoformat()
    return Outcome(check, f"p/{node}{part}", node, verdict, evidence="x", evidence_at=at)


def some(chance: Random) -> list[Told]:
    """Return a run: some checks on some parts of some nodes, each once, as it came out at some minute."""
    asked = chance.sample(list(product(CHECKS, PARTS, NODES)), chance.randrange(12))
    return [(*one, chance.choice(VERDICTS), chance.randrange(60)) for one in asked]


def test_the_oldest_of_the_newest_judgements_of_each_check(tmp_path):
    chance, ledger = Random(7), Ledger.open(tmp_path / "ledger.sqlite")
    newest: dict[tuple[str, str, str], float] = {}
    for number in range(30):
        told = some(chance)
        ledger.record(SuiteRun(f"r{number}", (NOON + timedelta(hours=1)).isoformat()), map(outcome, told))
        for check, part, node, verdict, minute in told:
            if verdict != "error":
                key, at = (node, check, part), (NOON + timedelta(minutes=minute)).timestamp()
                newest[key] = max(newest.get(key, at), at)
        assert ledger.ages(NODES) == ages_of(newest)


def ages_of(newest: dict[tuple[str, str, str], float]) -> dict[str, dict[str, CheckAge]]:
    expected: dict[str, dict[str, CheckAge]] = {node: {} for node in NODES}
    for node, check, _ in newest:
        of = [at for key, at in newest.items() if key[:2] == (node, check)]
        expected[node][check] = CheckAge(len(of), min(of))
    return expected


def test_a_node_that_nobody_judged_has_none(tmp_path):
    assert Ledger.open(tmp_path / "ledger.sqlite").ages(["n9"]) == {"n9": {}}
    assert Ledger.open(tmp_path / "ledger.sqlite").ages([]) == {}
