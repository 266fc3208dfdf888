"""Cables that are swapped again after the repair reopen the same ticket, with its history, in every sink."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay.act.ingest.collection import scan_fabrics
from assay.act.loop.context import ControllerContext
from assay.act.tickets.ticket_updates import update_tickets
from assay.cli.verbs.tickets import tickets_app
from assay.declare.loader import load_fleet
from assay.fabric.design.compiler import compile_topology
from assay.lab.fabric.cabling import lay_cables, swap_cables
from assay.lab.world import LabWorld
from assay.ledger.store import Ledger
from assay.model.specs.node_settings import make_node_settings
from assay.observe.evidence_store import EvidenceStore
from assay.tell.messages.delivery import deliver_tickets
from tests.support.places import ROOT

ENDS = ("n0005/mlx5_3", "n0006/mlx5_3")


@dataclass
class Clock:
    at: datetime = datetime(2026, 11, 21, 12, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[ControllerContext]:
    fleet, home = load_fleet(ROOT), tmp_path / ".assay"
    variables = {
        "fabric": "compute",
        "fabric_discover": [sys.executable, "-m", "assay.lab.fabric.ibnetdiscover", str(tmp_path)],
    }
    settings = make_node_settings(variables)
    fleet = replace(fleet, nodes={name: replace(node, settings=settings) for name, node in fleet.nodes.items()})
    lay_cables(LabWorld(tmp_path), compile_topology(fleet.designs["compute"], fleet))
    ledger = Ledger.open(home / "ledger.sqlite")
    yield ControllerContext(fleet, ledger, EvidenceStore(home / "evidence"), Clock(), home, tmp_path / "reports")
    ledger.close()


def look(desk: ControllerContext) -> list[str]:
    """Scan, write the tickets and deliver them; return the kinds of the lines about tickets that it added."""
    before = len(desk.ledger.entries())
    desk.clock.sleep(3600)
    scan_fabrics(desk, list(desk.fleet.nodes))
    update_tickets(desk)
    assert deliver_tickets(desk) == []
    return [entry.kind for entry in desk.ledger.entries()[before:]]


def test_a_swap_that_comes_back_is_its_old_ticket_with_its_history(desk: ControllerContext, tmp_path: Path) -> None:
    (tmp_path / "inventory").mkdir()
    world = LabWorld(tmp_path)
    assert look(desk) == []
    swap_cables(world, *ENDS)
    assert look(desk) == ["ticket.opened", "ticket.delivered"]
    assert look(desk) == []
    swap_cables(world, *ENDS)
    assert look(desk) == ["ticket.closed", "ticket.delivered"]
    swap_cables(world, *ENDS)
    assert look(desk) == ["ticket.reopened", "ticket.delivered"]
    assert look(desk) == []

    (file,) = (desk.home / "tickets").iterdir()
    for words in (["--fleet", str(tmp_path)], ["--all", "--fleet", str(tmp_path)]):
        shown = CliRunner().invoke(tickets_app, words).stdout
        for text in (shown, file.read_text()):
            assert "seen again 60 min after it was closed by fabric scan compute at" in text
            assert "3/1" in text
            assert "r06" in text
