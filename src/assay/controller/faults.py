"""Turns what was seen and judged into faults in the ledger, and ends those that a newer pass has proved gone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from assay.controller.desk import Desk
from assay.lifecycle import journal
from assay.lifecycle.classify import cleared_in, faults_in
from assay.lifecycle.situation import NodeView, Situation
from assay.model.entry import Entry
from assay.model.evidence import Evidence


def classify(desk: Desk, situation: Situation, seen: Mapping[str, Evidence]) -> None:
    """Append the faults that this look adds, and the ends of those that passed; telling twice appends nothing."""
    for view in situation.nodes:
        if view.name in seen:
            desk.ledger.append(*_entries(desk, situation, view, seen[view.name]))


def _entries(desk: Desk, situation: Situation, view: NodeView, evidence: Evidence) -> Iterator[Entry]:
    spec = desk.fleet.spec_of(view.name)
    for fault in faults_in(desk.fleet.catalog, situation.policy, view.node, spec, view.story, evidence, view.latest):
        yield journal.fault(fault, situation.now)
    for ended in cleared_in(view.story, view.latest):
        yield journal.cleared(view.name, ended, situation.now)
