"""The judge of rollouts complains of each wrong that is planted into a story of four nodes, and of nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from assay.act.actions.action import EffectIntent, EffectVerification
from assay.act.effects.effect_journal import make_end_entry, make_intent_entry
from assay.declare.loader import load_fleet
from assay.model.entries import rollouts as content
from assay.model.entries.node_entries import MoveEntry
from assay.model.fleet import Fleet
from assay.model.ledger_entry import LedgerEntry
from tests.integration.chaos.rolling_repository import FIRST, RollingRepository
from tests.integration.chaos.rolling_world import Event, encode
from tests.integration.chaos.rollout_judge import RolloutStory, find_wrongs

SECOND, HEAT = FIRST | {"bmc": "2"}, "assay: r1"
NODES = ("n0000", "n0001", "n0002", "n0003")


@dataclass
class Tale:
    """A story as it is told: entries of the ledger, whose numbers follow from their order, and events."""

    entries: list[LedgerEntry] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    minute: int = 0

    def say(self, entry: LedgerEntry) -> None:
        self.entries.append(replace(entry, seq=len(self.entries) + 1))

    def end(self, reason: str) -> None:
        self.say(content.RolloutFinishedEntry("r1", reason).make_entry("end", self.at))

    @property
    def at(self) -> str:
        return f"2026-11-21T00:{self.minute:02}:00+00:00"

    def order(self, *names: str) -> None:
        self.minute += 1
        for name in names:
            order = MoveEntry("zap", "rollout r1", "bmc 1 → 2", rollout="r1")
            self.say(order.make_entry(f"order {name} {len(self.entries)}", self.at, name))

    def leave(self, name: str, *, failure: str = "") -> None:
        intent = EffectIntent(f"zap {name}", "zap", name, f"d {name}", "because")
        self.say(make_intent_entry(intent, self.at, {}, {}))
        self.events.append(Event(name, "cordon", HEAT))
        if failure:
            self.events.append(Event(name, failure, "", intent.effect))
            return
        self.events.append(Event(name, "flash", "bmc 2", intent.effect))
        self.events.append(Event(name, "reset", encode(SECOND), intent.effect))

    def prove(self, *names: str) -> None:
        for name in names:
            self.events.append(Event(name, "uncordon", HEAT))
            entry = content.NodeProvenEntry("r1", "passed")
            self.say(entry.make_entry(f"proven {name} {len(self.entries)}", self.at, name))

    def wave(self, *names: str) -> None:
        self.order(*names)
        for name in names:
            self.leave(name)
        self.prove(*names)


def begin() -> Tale:
    tale = Tale()
    tale.say(content.CommitAdoptedEntry("c2", "c1").make_entry("adopted", tale.at))
    group = content.RolloutGroup("zap", "bmc 1 → 2", "c1", NODES)
    tale.say(content.RolloutStartedEntry("r1", "c1", "c2", (group,)).make_entry("started", tale.at))
    return tale


def whole() -> Tale:
    tale = begin()
    tale.wave("n0000", "n0001")
    tale.wave("n0002", "n0003")
    tale.end("4 of 4 nodes proven")
    return tale


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    root: Path = tmp_path_factory.mktemp("fleet")
    RollingRepository(root, 14).lay_out()
    return load_fleet(root)


@pytest.fixture
def judged(fleet: Fleet) -> Callable[[Tale], list[str]]:
    versions = {"c1": FIRST, "c2": SECOND}
    return lambda tale: list(find_wrongs(RolloutStory(fleet, versions, tale.entries, tale.events)))


def test_a_whole_story_has_no_wrong(judged):
    assert judged(whole()) == []


def test_a_node_that_failed_by_a_planted_failure_is_no_wrong(judged):
    tale = begin()
    tale.wave("n0000", "n0001")
    tale.order("n0002", "n0003")
    tale.leave("n0002", failure="stuck")
    tale.leave("n0003")
    tale.prove("n0003")
    tale.end("3 of 4 nodes proven, failed: n0002")
    assert judged(tale) == []


def plant(at: int, *events: Event) -> Tale:
    tale = whole()
    tale.events[at:at] = events
    return tale


def flashed_twice() -> Tale:
    return plant(3, Event("n0000", "flash", "bmc 2", "zap n0000"))


def reset_twice() -> Tale:
    return plant(3, Event("n0000", "reset", encode(SECOND), "zap n0000"))


def disturbed() -> Tale:
    return plant(3, Event("n0000", "disturbed", "j1", "zap n0000"))


def cordoned_twice() -> Tale:
    return plant(1, Event("n0000", "cordon", HEAT))


def uncordoned_twice() -> Tale:
    return plant(len(whole().events), Event("n0000", "uncordon", HEAT))


def opened_of_somebody_else() -> Tale:
    tale = whole()
    tale.events = [replace(one, detail="ann") if one.what == "cordon" else one for one in tale.events]
    return tale


def without_cordons() -> Tale:
    tale = whole()
    tale.events = [one for one in tale.events if "cordon" not in one.what]
    return tale


def too_many_out() -> Tale:
    return plant(1, *(Event(name, "cordon", HEAT) for name in ("n0008", "n0006")))


def ordered_again() -> Tale:
    tale = begin()
    tale.wave("n0000", "n0001")
    tale.wave("n0002", "n0003", "n0000")
    tale.end("4 of 4 nodes proven")
    return tale


def too_large() -> Tale:
    tale = begin()
    tale.wave(*NODES)
    tale.end("4 of 4 nodes proven")
    return tale


def too_early() -> Tale:
    tale = begin()
    tale.order("n0000", "n0001")
    tale.order("n0002", "n0003")
    for name in NODES:
        tale.leave(name)
    tale.prove(*NODES)
    tale.end("4 of 4 nodes proven")
    return tale


def without_proof() -> Tale:
    tale = begin()
    tale.wave("n0000", "n0001")
    tale.order("n0002", "n0003")
    tale.leave("n0002")
    tale.leave("n0003")
    tale.prove("n0003")
    tale.end("3 of 4 nodes proven, failed: n0002")
    return tale


def never_flashed() -> Tale:
    tale = whole()
    tale.events = [one for one in tale.events if one.node != "n0002"]
    return tale


def failed_without_failure() -> Tale:
    tale = whole()
    intent = EffectIntent("zap n0002", "zap", "n0002", "d n0002", "because")
    tale.say(make_end_entry(intent, tale.at, EffectVerification(False, "bmc 1, wanted 2")))
    return tale


def said_twice(place: int) -> Tale:
    tale = whole()
    tale.say(replace(tale.entries[place], id="again"))
    return tale


def same_id() -> Tale:
    tale = whole()
    tale.say(tale.entries[0])
    return tale


def without_end() -> Tale:
    tale = whole()
    tale.entries.pop()
    return tale


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (flashed_twice, "n0000: flash of bmc to 2 twice in a row"),
        (reset_twice, "n0000: reset of all to"),
        (disturbed, "n0000 was flashed while j1 ran on it"),
        (cordoned_twice, "n0000 was cordoned twice"),
        (uncordoned_twice, "n0000 was uncordoned, and had no such cordon"),
        (opened_of_somebody_else, "n0000 was uncordoned, and had no such cordon"),
        (without_cordons, "n0000 was flashed, and had no cordon"),
        (too_many_out, "n0006 is out as number 3 of its pool"),
        (ordered_again, "n0000 is in two waves"),
        (ordered_again, "2 times move r1 n0000"),
        (too_large, "n0000 is out as number 4 of its rack"),
        (too_large, "orders 2 nodes of pool-0 before its canary is proven"),
        (too_early, "before n0000 is proven or has failed"),
        (without_proof, "n0002 has no proof, and nothing failed there"),
        (failed_without_failure, "zap of n0002 is said to have failed"),
        (never_flashed, "n0002 is proven, and never got"),
        (lambda: said_twice(0), "2 times commit.adopted c2"),
        (lambda: said_twice(1), "2 times rollout.started r1"),
        (lambda: said_twice(-1), "2 times rollout.ended r1"),
        (lambda: said_twice(-2), "2 times rollout.proven r1 n0003"),
        (same_id, "2 times commit.adopted adopted"),
        (without_end, "rollout r1 has not ended"),
    ],
)
def test_each_wrong_is_found(judged, wrong: Callable[[], Tale], says: str):
    wrongs = judged(wrong())
    assert any(says in one for one in wrongs), wrongs
