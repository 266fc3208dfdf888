"""Checklists that nobody is ever shown."""

from __future__ import annotations

from collections.abc import Iterator

from assay.fleet.draft import Draft
from assay.fleet.rules.book import Finding, rule
from assay.fleet.rules.names import nearest
from assay.model.checklist import Checklists
from assay.model.policy import LifecyclePolicy


@rule(
    "ASY0210",
    "a checklist for a state where nobody certifies",
    why="It would be on no ticket, or on one that no certification closes.",
    needs=(LifecyclePolicy,),
)
def strange_state(draft: Draft) -> Iterator[Finding]:
    """Find checklists of states that no policy has, or that wait for nobody's certification."""
    policies = draft.of(LifecyclePolicy).values()
    waiting = {name for policy in policies for name, state in policy.states.items() if state.certified_to}
    for listed in draft.of(Checklists).values() if policies else ():
        for name in listed.states:
            if name not in waiting:
                place = draft.at(f"Checklists/{listed.name}", "states", name)
                yield Finding(place, f"no state {name} waits for a technician's certification", nearest(name, waiting))
