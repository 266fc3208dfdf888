"""What outcomes must have been judged by is found once for a fleet, and anew for a fleet that was read again."""

from __future__ import annotations

from dataclasses import replace

from assay.declare.loader import load_fleet
from assay.tell.views.sources import LastFleetCache, read_judging_hashes
from tests.support.places import ROOT


def test_the_suites_are_read_once_for_a_fleet() -> None:
    fleet, kept = load_fleet(ROOT), LastFleetCache(read_judging_hashes)
    hashes = kept.find(fleet)
    assert kept.find(fleet) is hashes
    again = kept.find(replace(fleet))
    assert again is not hashes
    assert again.of_node("n0003") == hashes.of_node("n0003") != {}
