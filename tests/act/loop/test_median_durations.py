"""How long things took is read out of the ledger's own lines."""

from __future__ import annotations

from assay.act.loop.plan_inputs import median_action_durations, median_state_durations
from assay.decide.plan.inputs import MedianDuration
from assay.model.ledger_entry import LedgerEntry


def at(hour: float) -> str:
    return f"2026-11-21T{int(hour):02}:{round(hour % 1 * 60):02}:00+00:00"


def effect(name: str, kind: str, hour: float, action: str = "zap") -> LedgerEntry:
    body = {"effect": name, "action": action, "decision": "d"}
    return LedgerEntry(f"{name} {kind}", at(hour), f"effect.{kind}", "n1", body)


def move(hour: float, origin: str, target: str, node: str = "n1") -> LedgerEntry:
    return LedgerEntry(f"{node} {hour}", at(hour), "transition", node, {"from": origin, "to": target})


def test_an_action_takes_from_its_intent_to_its_proof() -> None:
    told = [
        effect("e1", "intent", 1), effect("e1", "done", 2), effect("e1", "verified", 2.5),
        effect("e2", "intent", 3), effect("e2", "verified", 6.5),
        effect("e3", "intent", 7), effect("e3", "verified", 9),
    ]  # fmt: skip
    assert median_action_durations(told) == {"zap": MedianDuration(2.0, 3)}


def test_what_failed_or_goes_on_took_no_time_that_counts() -> None:
    assert (
        median_action_durations([effect("e1", "intent", 1), effect("e1", "failed", 2), effect("e2", "intent", 3)]) == {}
    )


def test_a_stay_ends_with_the_next_transition() -> None:
    told = [move(1, "onboard", "seatrial"), move(2, "seatrial", "zap"), move(5, "zap", "test")]
    other = [move(3, "onboard", "seatrial", "n2"), move(7, "seatrial", "zap", "n2")]
    assert median_state_durations([*told, *other]) == {
        "seatrial": MedianDuration(2.5, 2),
        "zap": MedianDuration(3.0, 1),
    }


def test_a_stay_that_began_before_the_ledger_has_no_length() -> None:
    enrolled = LedgerEntry("e", at(0), "node.enrolled", "n1", {"pool": "a", "state": "production"})
    assert median_state_durations([enrolled, move(5, "production", "draining")]) == {}
