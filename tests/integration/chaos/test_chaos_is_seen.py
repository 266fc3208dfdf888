"""What the chaos tests look for is found when it is there: each wrong planted by hand, and a story without any."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from assay.act.actions.action import EffectIntent, EffectVerification
from assay.act.effects import effect_journal
from assay.ledger.store import Ledger
from assay.model.ledger_entry import LedgerEntry
from tests.integration.chaos.chaos import Chaos

AT = "2026-11-21T12:00:00+00:00"
NODE, REBOOT = "n0001", effect_journal.derive_effect_id("d1", "reboot")
INTENT = EffectIntent(REBOOT, "reboot", NODE, "d1", "because")
ENROLLED = LedgerEntry("e1", AT, "node.enrolled", NODE, {"pool": "p1", "state": "production"})


def moved(decision: str, origin: str, target: str) -> list[LedgerEntry]:
    body = {"decision": decision, "from": origin, "to": target, "timing": "immediate", "rule": "a rule"}
    body |= {"remedy": "", "because": [], "blockers": []}
    told = {"from": origin, "to": target, "decision": decision}
    return [
        LedgerEntry(decision, AT, "decision", NODE, body),
        LedgerEntry(f"t{decision}", AT, "transition", NODE, told),
    ]


def carried(intent: EffectIntent, *, done: bool | None = True) -> list[LedgerEntry]:
    ending = effect_journal.make_end_entry(intent, AT, EffectVerification(done, "a new boot"))
    return [effect_journal.make_intent_entry(intent, AT, {"deeds": 0}, {}), ending]


def effects(actions: tuple[str, ...]) -> list[LedgerEntry]:
    wishes = [
        EffectIntent(effect_journal.derive_effect_id("d1", action), action, NODE, "d1", "because") for action in actions
    ]
    return [entry for wish in wishes for entry in carried(wish)]


OUT = [
    ENROLLED,
    *moved("d1", "production", "production-reboot"),
    *effects(("cordon", "drain-now", "collect", "reboot")),
]
Plant = Callable[..., list[str]]


@pytest.fixture
def planted(tmp_path: Path) -> Plant:
    def plant(
        *entries: LedgerEntry, deeds: tuple[tuple[str, str], ...] = (("reboot", REBOOT),), then: str = ""
    ) -> list[str]:
        story = Chaos(tmp_path, str(tmp_path / "ledger.sqlite"), nodes=4, seed=1)
        for what, effect in deeds:
            story.world.do(NODE, what, effect)
        ledger = Ledger.open(story.place)
        ledger.append(*entries)
        ledger.close()
        with sqlite3.connect(story.place) as database:
            database.executescript(then)
        return story.wrongs()

    return plant


def test_a_story_without_a_wrong_has_none(planted):
    assert planted(*OUT) == []


def test_an_effect_that_happened_twice(planted):
    assert planted(*OUT, deeds=(("reboot", REBOOT),) * 2) == [f"2 times: {(NODE, 'reboot', REBOOT)}"]


def test_a_deed_that_nobody_meant(planted):
    (wrong,) = planted(*OUT, deeds=(("reboot", REBOOT), ("reboot", "stray")))
    assert "nobody meant to reboot n0001" in wrong


def test_an_effect_that_is_verified_and_never_happened(planted):
    (wrong,) = planted(*OUT, deeds=())
    assert "the world knows nothing" in wrong


def test_an_effect_that_was_lost(planted):
    (wrong,) = planted(*OUT[:-2], deeds=())
    assert wrong == "n0001 is still owed reboot: "


def test_an_effect_that_is_open_without_a_reason(planted):
    wrongs = planted(*OUT[:-1])
    assert "reboot of n0001 is open without a reason (intent)" in wrongs


def test_an_effect_that_was_done_and_is_said_to_have_failed(planted):
    (wrong,) = planted(*OUT[:-2], *carried(INTENT, done=False))
    assert "is said to have failed" in wrong


def test_a_way_that_the_policy_does_not_draw(planted):
    (wrong,) = planted(ENROLLED, *moved("d1", "production", "rma"), *effects(("wipe", "dossier")), deeds=())
    assert "from production to rma, where nothing leads" in wrong


def test_a_way_from_where_the_node_is_not(planted):
    wrongs = planted(ENROLLED, *moved("d1", "triage", "debug"), deeds=())
    assert "n0001 went from triage, but was in production" in wrongs


def test_more_out_of_a_rack_than_its_limit(planted):
    others = [f"n000{n}" for n in (0, 2, 3)]
    entries = [replace(one, id=f"{one.id}-{node}", node=node) for node in others for one in OUT[:3]]
    wrongs = planted(*OUT, *entries)
    assert [line.partition(" (")[0] for line in wrongs if "left service" in line] == [
        "n0002 left service as number 3 of its rack",
        "n0002 left service as number 2 of its pool",
        "n0003 left service as number 4 of its rack",
        "n0003 left service as number 2 of its pool",
    ]


def test_a_broken_chain(planted):
    tampering = "DROP TRIGGER entry_no_update; UPDATE entry SET at = replace(at, '2026', '2025') WHERE seq = 2"
    (wrong,) = planted(*OUT, then=tampering)
    assert wrong.startswith("ledger: entry 2 (")
