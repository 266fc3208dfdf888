"""Turns what was seen and judged into faults in the ledger, and ends those that a newer pass has proved gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assay.controller.desk import Desk
from assay.controller.known.memory import Memory
from assay.controller.known.newest import outcomes_of
from assay.controller.lock import told_by_one
from assay.ledger.texts import batches
from assay.lifecycle import journal
from assay.lifecycle.classify import cleared_in, faults_in
from assay.lifecycle.excused import counting, proving
from assay.lifecycle.recovered import back_in_bounds, recovered_in
from assay.lifecycle.story import Story
from assay.lifecycle.when import moment
from assay.model.clock import AHEAD
from assay.model.entry import Entry
from assay.model.evidence import Evidence
from assay.model.faults import FaultCatalog
from assay.model.outcome import Recorded

TOGETHER = 200
"""Nodes whose faults are told in one transaction."""


def classify(memory: Memory, seen: Mapping[str, Evidence]) -> None:
    """Append the faults that this look adds, and the ends of those that passed; telling twice appends nothing.

    Some nodes at a time, so that neither their outcomes nor the turn to add faults is held for long.
    """
    desk, latest_at = memory.desk, memory.desk.clock.now() + AHEAD
    for name in [name for name, evidence in seen.items() if evidence.at > latest_at]:
        desk.progress(
            f"{name}: its evidence is of {seen[name].at:%Y-%m-%d %H:%M:%S} UTC, which is yet to come: left out"
        )
    for names in batches([name for name in seen if seen[name].at <= latest_at], TOGETHER):
        latest = outcomes_of(desk.ledger, names)
        with told_by_one(desk.home):
            stories = memory.stories()
            told = [(stories[name], seen[name], latest[name]) for name in names if name in stories]
            desk.ledger.append(*(entry for one in told for entry in entries_of(desk, *one)))


def entries_of(desk: Desk, story: Story, evidence: Evidence, latest: Sequence[Recorded] = ()) -> list[Entry]:
    """Return what this look at a node adds to its story: faults, and the ends of those that passed.

    What a known issue excuses, and what checks find that only observe, is no fault. The story must be told by one at a
    time, up to the ledger's last line.
    """
    node, spec, now = desk.fleet.nodes[story.node], desk.fleet.spec_of(story.node), desk.clock.now()
    known, observed = desk.fleet.known_issues, desk.fleet.observed_checks
    latest = [one for one in latest if moment(one.measured_at) <= now + AHEAD]
    counted, proofs = counting(latest, node, known, observed, now), proving(latest, observed)
    seen = faults_in(catalog_of(desk), desk.policy, node, spec, story, evidence, counted)
    entries = [journal.fault(fault, now) for fault in seen]
    catalog = desk.fleet.catalog
    over = [
        *cleared_in(story, proofs),
        *recovered_in(catalog, story, evidence),
        *back_in_bounds(catalog, story, proofs),
    ]
    again = {fault.id for fault in seen}
    return entries + [journal.cleared(story.node, ended, now) for ended in over if ended.fault not in again]


def catalog_of(desk: Desk) -> FaultCatalog:
    """Return what the fleet's fault catalogues say together. Raises Trouble where there is none."""
    return desk.fleet.catalog
