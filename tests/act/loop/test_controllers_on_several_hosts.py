"""Controllers on several hosts: faults are counted by one at a time, and a scheduler that hangs stops only its own."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from dataclasses import replace
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from assay.act.ingest import fault_recording
from assay.act.ingest.fault_recording import record_agent_faults
from assay.act.loop.rack_leases import LeasedRackAssignment
from assay.act.loop.reconcile_pass import record_decisions
from assay.act.loop.snapshot import FleetSnapshotCache
from assay.adapters.scheduler import SchedulerNodeStatus
from assay.model.evidence import EvidenceDocument
from assay.model.reading import value
from tests.act.quiet_site import FLEET, NODES, Site
from tests.ledger.forks import Forked

ONE, OTHER = NODES[:2]
PATIENCE_S = 60.0


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where a ledger may be made: a file that two folders `.assay/` share, or a real PostgreSQL."""
    if request.param == "sqlite":
        return tmp_path / "ledger.sqlite"
    url: str = request.getfixturevalue("database")
    return url


@pytest.fixture
def hosts(place: Path | str, tmp_path: Path) -> Iterator[tuple[Site, Site]]:
    """Two controllers on one ledger, each with a `.assay/` of its own."""
    made = Site(place, tmp_path / "a"), Site(place, tmp_path / "b")
    yield made
    for site in made:
        site.ledger.close()


def alert(site: Site, minute: int) -> EvidenceDocument:
    """Return an alert about one GPU, of its own time and so a sighting of its own."""
    at = site.clock.at + timedelta(minutes=minute)
    firing = {"fault": "gpu.xid.79", "part": "gpu0", "at": at.isoformat(), "detail": "an alert", "fingerprint": "f"}
    return EvidenceDocument(ONE, site.clock.at, {"alerts": {"firing": value([firing])}})


def count_slowly(line: Connection, place: Path | str, home: Path) -> None:
    """Record an alert; once its count has been read, wait for a word before the new one is written."""
    site, make = Site(place, home), fault_recording.make_fault_entries

    def wait_and_make(*words, **more):
        line.send("counting")
        line.recv()
        return make(*words, **more)

    fault_recording.make_fault_entries = wait_and_make
    record_agent_faults(site.desk, [alert(site, 0)])
    line.send("counted")


def test_a_fault_that_two_hosts_see_at_once_is_counted_twice(place: Path | str, tmp_path: Path) -> None:
    other = Forked(count_slowly, place, tmp_path / "a")
    assert other.hear() == "counting"
    here = Site(place, tmp_path / "b")
    thread = threading.Thread(target=record_agent_faults, args=(here.desk, [alert(here, 1)]))
    thread.start()
    thread.join(0.5)
    assert thread.is_alive(), "it waits for the other host"
    other.say()
    assert other.hear() == "counted"
    thread.join(PATIENCE_S)
    (fault,) = FleetSnapshotCache(here.desk).node_states()[ONE].faults
    assert fault.count == 2
    here.ledger.close()
    assert other.end() == 0


def test_what_a_killed_host_held_is_free_at_once(place: Path | str, tmp_path: Path) -> None:
    other = Forked(count_slowly, place, tmp_path / "a")
    assert other.hear() == "counting"
    other.kill()
    here = Site(place, tmp_path / "b")
    record_agent_faults(here.desk, [alert(here, 1)])
    (fault,) = FleetSnapshotCache(here.desk).node_states()[ONE].faults
    assert fault.count == 1
    here.ledger.close()


def test_a_scheduler_that_hangs_does_not_hold_the_decisions_of_another_controller(hosts: tuple[Site, Site]) -> None:
    first, second = hosts
    asked, go, read = threading.Event(), threading.Event(), first.far.read_statuses

    def hang(nodes: Collection[str]) -> dict[str, SchedulerNodeStatus]:
        asked.set()
        assert go.wait(PATIENCE_S)
        return read(nodes)

    first.far.read_statuses = hang  # type: ignore[method-assign]
    for site in hosts:
        site.later(minutes=1)  # from now on a decision counts healthy nodes, and asks about none of them
    first.fault(ONE)
    shares = [LeasedRackAssignment(site.ledger, FLEET.nodes, 60) for site in hosts]
    hanging = threading.Thread(
        target=record_decisions, args=(FleetSnapshotCache(first.desk),), kwargs={"assignment": shares[0]}
    )
    hanging.start()
    assert asked.wait(PATIENCE_S)

    assert record_decisions(FleetSnapshotCache(second.desk), assignment=shares[1]) == 1
    next(second.serial)  # the number of a fault is its host's own here
    second.fault(OTHER)
    go.set()
    hanging.join(PATIENCE_S)
    assert not hanging.is_alive()

    decisions = first.ledger.entries(kinds=["decision"])
    assert [entry.node for entry in decisions] == [ONE], "by the newest ledger, and not about whom it did not ask for"
    assert record_decisions(FleetSnapshotCache(first.desk), assignment=shares[0]) == 1, "which comes next"


def test_nodes_that_are_declared_later_are_looked_after_too(hosts: tuple[Site, Site]) -> None:
    site, _ = hosts
    known = {name: FLEET.nodes[name] for name in NODES[:3]}
    share = LeasedRackAssignment(site.ledger, known, 60)
    new = replace(FLEET.nodes[NODES[3]], rack="a-new-rack")
    assert share.select_assigned([new.name]) == []
    share.replace_nodes(known | {new.name: new})
    assert share.select_assigned([new.name]) == [new.name]
    share.release()
