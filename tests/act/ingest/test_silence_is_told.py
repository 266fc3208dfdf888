"""Who is heard, and who listens: kept between passes, told once, and no fault of a fleet that nobody listened to."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from assay.act.ingest.silent_nodes import open_last_seen, record_answers, record_listening, record_silence
from assay.act.loop.context import ControllerContext
from assay.act.loop.enrollment import enroll_nodes
from assay.act.loop.snapshot import FleetSnapshotCache
from assay.declare.loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.evidence import EvidenceDocument
from assay.model.fleet import Fleet
from assay.observe.evidence_store import EvidenceStore
from assay.observe.last_seen import DeliveryPosition
from tests.support.places import ROOT

WELL, DEAD = {"host": {"boot_id": {"value": "x"}}}, {"failed": "no answer within 10 s"}
NAMES = [f"n{number:04}" for number in range(3, 17)]


class Hands:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.at = datetime(2026, 11, 21, 12, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    """Return the example fleet, whose pool h100-a has agents."""
    root = tmp_path_factory.mktemp("fleet")
    for part in ("inventory", "specs", "suites"):
        shutil.copytree(ROOT / part, root / part)
    tokens = {name: {"agent_token": {"env": f"TOKEN_{name}"}} for name in NAMES}
    (root / "inventory/agents.yml").write_text(json.dumps({"h100-a": {"hosts": tokens}}))
    return load_fleet(root)


@pytest.fixture
def desk(fleet: Fleet, tmp_path: Path) -> ControllerContext:
    """Return the desk of the fleet, a day after it was enrolled."""
    ledger, store = Ledger.open(tmp_path / "ledger.sqlite"), EvidenceStore(tmp_path / "evidence")
    desk = ControllerContext(fleet, ledger, store, Hands(), tmp_path, tmp_path / "reports")
    enroll_nodes(desk)
    desk.clock.sleep(86400)
    return desk


def listened(desk: ControllerContext, minutes: float, *speaking: str) -> None:
    """Let minutes pass in which somebody listens to agents, and those named speak."""
    for _ in range(int(minutes * 2)):
        desk.clock.sleep(30)
        record_listening(desk)
        open_last_seen(desk).record_delivery(
            {name: DeliveryPosition("life", 1, 1) for name in speaking}, desk.clock.now()
        )


def told(desk: ControllerContext) -> list[tuple[str, str]]:
    """Judge the silence, and return what stands in the ledger of it."""
    record_silence(desk, FleetSnapshotCache(desk).build_states_snapshot())
    entries = desk.ledger.entries(kinds=["fault", "fault.cleared", "observe.failed"])
    return [(one.kind, one.body.get("subject") or one.body.get("channel", one.node)) for one in entries]


def test_an_agent_that_falls_silent_is_told_and_the_others_are_not(desk):
    listened(desk, 10, *NAMES)
    assert told(desk) == []
    listened(desk, 6, *NAMES[1:])
    assert told(desk) == [("fault", "h100-a/n0003/agent")]
    listened(desk, 1, *NAMES)
    assert told(desk) == [("fault", "h100-a/n0003/agent"), ("fault.cleared", "n0003")]


def test_when_nobody_listened_that_is_told_once_and_held_against_no_node(desk):
    listened(desk, 10, *NAMES)
    desk.clock.sleep(3 * 86400)
    assert told(desk) == told(desk) == [("observe.failed", "agents")]
    listened(desk, 4)
    assert told(desk) == [("observe.failed", "agents")]


def test_all_agents_at_once_are_one_wave_that_is_told_once(desk):
    listened(desk, 10, *NAMES)
    listened(desk, 6)
    assert told(desk) == told(desk) == [("observe.failed", "agent of pool h100-a")]
    listened(desk, 6, *NAMES[1:])
    assert told(desk)[1:] == [("fault", "h100-a/n0003/agent")]


def test_a_fleet_to_whose_agents_nobody_ever_listened_is_told_nothing(desk):
    assert told(desk) == []


def looked(
    desk: ControllerContext, minutes: float, dead: tuple[str, ...], names: list[str] = NAMES
) -> list[tuple[str, str]]:
    """Let minutes pass, make a pass over nodes of which some do not answer, and return what was told."""
    desk.clock.sleep(minutes * 60)
    now = desk.clock.now()
    record_answers(desk, [EvidenceDocument(name, now, {"probe": DEAD if name in dead else WELL}) for name in names])
    return told(desk)


def test_a_probe_that_stays_away_longer_than_its_deadline_is_told(desk):
    assert looked(desk, 5, ()) == []
    assert looked(desk, 5, ("n0003",)) == []
    assert looked(desk, 59, ("n0003",)) == []
    assert looked(desk, 2, ("n0003",)) == [("fault", "h100-a/n0003/probe")]
    assert looked(desk, 5, ())[1:] == [("fault.cleared", "n0003")]


def test_one_look_after_a_long_absence_of_the_controller_tells_nothing(desk):
    looked(desk, 5, ())
    assert looked(desk, 3 * 24 * 60, tuple(NAMES)) == []


def test_a_dead_collector_is_one_wave(desk):
    looked(desk, 5, ())
    for _ in range(15):
        found = looked(desk, 5, tuple(NAMES))
    assert found == [("observe.failed", "probe of pool h100-a")]


def test_readings_that_were_pushed_long_ago_are_no_answer(desk):
    now = desk.clock.now()
    record_answers(desk, [EvidenceDocument("n0003", now, {"probe": WELL})])
    desk.clock.sleep(2 * 3600)
    record_answers(desk, [EvidenceDocument("n0003", now, {"probe": WELL})])
    desk.clock.sleep(3601)
    record_answers(desk, [EvidenceDocument("n0003", now, {"probe": WELL})])
    assert told(desk) == [("fault", "h100-a/n0003/probe")]


def test_what_was_heard_is_there_again_in_another_process_and_may_be_deleted(desk):
    listened(desk, 10, *NAMES)
    assert open_last_seen(desk).positions()["n0003"] == DeliveryPosition("life", 1, 1)
    (desk.home / "heard.sqlite").unlink()
    assert told(desk) == []
    assert open_last_seen(desk).positions() == {}
