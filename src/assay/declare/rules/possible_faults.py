"""The faults that can occur, and which rule of a policy answers each of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from assay.model.specs.fault_catalog import (
    FaultBlame,
    FaultCatalog,
    FaultClass,
    FaultSeverity,
    Remedy,
    select_active_catalogs,
)
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.policy_sections import FaultRule

StateAndUse = tuple[str, bool]
"""A node's state, and whether the node is in use."""


class FaultKind(NamedTuple):
    """One fault that can occur. `catalog` and `entry` name the entry that defines its treatment."""

    name: str
    severity: FaultSeverity
    blame: FaultBlame
    remedy: Remedy
    catalog: str
    entry: tuple[str, ...]


def list_fault_kinds(catalogs: Iterable[FaultCatalog]) -> list[FaultKind]:
    """Return every fault that these catalogues define, and one that stands for all others."""
    found: dict[FaultKind, None] = {}
    every = select_active_catalogs(catalogs)
    for catalog in every:
        for title, fault in catalog.classes.items():
            for name in list_fault_names(title, fault):
                for severity in _severities(fault):
                    entry = ("classes", title, "remedy")
                    found[FaultKind(name, severity, fault.blame, fault.remedy, catalog.name, entry)] = None
    for catalog in [catalog for catalog in every if catalog.unknown] or every[:1]:
        other, place = catalog.default_treatment, ("unknown", "remedy")
        found[FaultKind("any other", other.severity, other.blame, other.remedy, catalog.name, place)] = None
    return list(found)


def list_fault_names(title: str, fault: FaultClass) -> list[str]:
    """Return the names of a class's faults: one for each XID and SXID, and the class's own name."""
    return list(dict.fromkeys([*fault.list_xid_names(), *([title] if fault.has_own_name else [])]))


def _severities(fault: FaultClass) -> list[FaultSeverity]:
    """Return the severities that a class's faults can have: below its `count`, a fault is informational."""
    return [fault.severity] if fault.count == 1 else [fault.severity, "informational"]


@dataclass(frozen=True)
class RuleReach:
    """What one rule matches, and what of that the rules before leave to it. Sets of fault kinds are bit masks."""

    title: str
    rule: FaultRule
    kinds: int
    unclaimed: Mapping[StateAndUse, int]

    @property
    def answered_kinds(self) -> int:
        """The kinds that it answers in at least one state."""
        answered = 0
        for kinds in self.unclaimed.values():
            answered |= kinds
        return answered

    def find_overlap(self, later: RuleReach) -> tuple[StateAndUse, int] | None:
        """Return a state, and the kinds that this rule answers there and a later rule matches too."""
        common = ((spot, left & later.kinds) for spot, left in self.unclaimed.items() if spot in later.unclaimed)
        return next(((spot, kinds) for spot, kinds in common if kinds), None)

    def within(self, later: RuleReach) -> bool:
        """Whether a later rule matches everything that this rule answers."""
        return all(not left & ~(later.kinds if spot in later.unclaimed else 0) for spot, left in self.unclaimed.items())


def compute_rule_reach(policy: LifecyclePolicy, kinds: Sequence[FaultKind]) -> Iterator[RuleReach]:
    """Yield the reach of each rule, in order: the first rule that matches wins."""
    taken: dict[StateAndUse, int] = {}
    for title, rule in policy.faults.items():
        matched = sum(1 << number for number, kind in enumerate(kinds) if _matches(rule, kind))
        states = rule.states or policy.states
        uses = (True, False) if rule.in_use is None else (rule.in_use,)
        spots = [(state, use) for state in states for use in uses]
        yield RuleReach(title, rule, matched, {spot: matched & ~taken.get(spot, 0) for spot in spots})
        for spot in spots:
            taken[spot] = taken.get(spot, 0) | matched


def decode_kinds(kinds: Sequence[FaultKind], bits: int) -> list[FaultKind]:
    """Return the fault kinds of a bit mask."""
    return [kind for number, kind in enumerate(kinds) if bits >> number & 1]


def find_starting_remedy(rule: FaultRule, kind: FaultKind) -> str:
    """Return the remedy with which a rule starts for a fault."""
    return kind.remedy if rule.remedy == "class" else rule.remedy


def list_target_states(policy: LifecyclePolicy, rule: FaultRule, kinds: Sequence[FaultKind]) -> list[str]:
    """Return the states to which a rule sends nodes with these faults, up to the last rung of the ladder."""
    if rule.timing == "record" or rule.to:
        return [rule.to] if rule.to and rule.timing != "record" and kinds else []
    rungs = {str(name): rung for name, rung in policy.ladder.rungs.items()}
    found: dict[str, None] = {}
    for remedy in sorted({find_starting_remedy(rule, kind) for kind in kinds}):
        rung: str | None = remedy
        while rung in rungs:
            found[rungs[rung].to] = None
            rung = rungs[rung].then
    return list(found)


def _matches(rule: FaultRule, kind: FaultKind) -> bool:
    return (
        (not rule.severity or kind.severity in rule.severity)
        and (not rule.classes or kind.name in rule.classes)
        and (not rule.blame or kind.blame in rule.blame)
    )
