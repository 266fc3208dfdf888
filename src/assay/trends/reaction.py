"""What one revision of the fleet repository says to something that was seen on a node in a state."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from assay.lifecycle.answers import answer_to
from assay.model.faults import FaultCatalog, Severity
from assay.model.fleet import Fleet
from assay.model.policy import LifecyclePolicy

IN_USE = True  # whose jobs are not known counts as in use, as when deciding


@dataclass(frozen=True, slots=True)
class Reaction:
    """What is said, and whether it takes the node elsewhere."""

    text: str
    moves: bool = False


PASSED = Reaction("passes")


@dataclass(frozen=True)
class Side:
    """One revision: its fleet, with the one policy and the one fault catalogue that it has."""

    fleet: Fleet
    policy: LifecyclePolicy
    catalog: FaultCatalog

    def limit(self, node: str, name: str) -> float | None:
        """Return a limit of a node's spec, None where it has none."""
        known = self.fleet.nodes.get(node)
        spec = self.fleet.node_specs.get(known.spec) if known else None
        limit = spec.limits.get(name) if spec else None
        return limit.value if limit else None

    def to_failure(self, node: str, state: str, phases: Collection[str], fault: str) -> Reaction:
        """Return what a failed check of these phases leads to."""
        here = self.policy.states.get(state)
        if here is None or node not in self.fleet.nodes:
            return Reaction("the state or the node is not there")
        if fault and set(here.watch) & set(phases):
            return self.to_fault(node, state, fault, self.catalog.treatment(fault).severity)
        if {want.phase for want in here.requires} & set(phases):
            return Reaction(f"fails, to {here.fail_to}", True) if here.fail_to else Reaction("fails, ticket")
        return Reaction(f"nothing in {state} looks at it")

    def to_fault(self, node: str, state: str, fault: str, severity: Severity) -> Reaction:
        """Return what an open fault of that severity leads to."""
        if state not in self.policy.states or node not in self.fleet.nodes:
            return Reaction("the state or the node is not there")
        treatment = self.catalog.treatment(fault)
        said = answer_to(self.policy, state, fault, severity, treatment.blame, treatment.remedy, IN_USE)
        acts = self.fleet.profile_of(node).acts_on_faults
        return Reaction(str(said), said.moves) if acts else Reaction("tracked, not acted on")
