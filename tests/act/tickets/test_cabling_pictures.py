"""A ticket about cables has a picture of its part of the fabric, beside the reports."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from assay.act.loop.context import ControllerContext
from assay.act.tickets.ticket_updates import draw_cabling_tickets
from assay.declare.loader import load_fleet
from assay.fabric.compare.compare import compare_cabling
from assay.fabric.compare.tickets import make_cabling_tickets
from assay.fabric.design.compiler import compile_topology
from assay.fabric.discovery import FabricDiscovery
from assay.fabric.readers.format_detection import read_topology
from assay.ledger.store import Ledger
from assay.model.clock import SystemClock
from assay.observe.evidence_store import EvidenceStore
from tests.support.fabrics.recorded_fabric import COMPUTE
from tests.support.places import ROOT

HERE = ROOT


@pytest.fixture
def context(tmp_path) -> ControllerContext:
    home = tmp_path / ".assay"
    home.mkdir()
    ledger, store = Ledger.open(home / "ledger.sqlite"), EvidenceStore(home / "evidence")
    return ControllerContext(load_fleet(HERE), ledger, store, SystemClock(), home, tmp_path / "reports")


@pytest.fixture
def comparison(context):
    """The example's fabric, with two cables less."""
    seen = read_topology(COMPUTE)
    topology = compile_topology(context.fleet.designs["compute"], context.fleet)
    cables = [cable for number, cable in enumerate(seen.cables) if number not in (0, 200)]
    return compare_cabling(topology, FabricDiscovery(cables, seen.devices))


def test_a_fresh_ticket_gets_the_picture_that_it_names(context, comparison, tmp_path):
    first, second = make_cabling_tickets(comparison)
    draw_cabling_tickets(context, [first], {"compute": comparison})
    path, what = first.files.split("  ")
    assert what == "picture of this part of the fabric"
    assert ET.parse(tmp_path / path).getroot().get("aria-label") == "compute: what is not as designed"
    assert not (tmp_path / second.files.split("  ")[0]).exists(), "nothing is new about that one"


def test_a_folder_that_cannot_be_written_costs_the_picture_only(context, comparison):
    context.reports.write_text("a file where the folder should be")
    draw_cabling_tickets(context, make_cabling_tickets(comparison), {"compute": comparison})
