"""Which faults can come, and which rule of a policy answers each of them: what fault rules are judged by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from assay.model.faults import Blame, FaultCatalog, FaultClass, Remedy, Severity, in_force
from assay.model.policy import FaultRule, LifecyclePolicy

Spot = tuple[str, bool]
"""Where a fault meets a node: the node's state, and whether it is in use."""


class Kind(NamedTuple):
    """One fault as it can come. `catalog` and `entry` say which entry treats it."""

    name: str
    severity: Severity
    blame: Blame
    remedy: Remedy
    catalog: str
    entry: tuple[str, ...]


def kinds_of(catalogs: Iterable[FaultCatalog]) -> list[Kind]:
    """Return every fault that these catalogues know, and one that they do not know."""
    found: dict[Kind, None] = {}
    every = in_force(catalogs)
    for catalog in every:
        for title, fault in catalog.classes.items():
            for name in names_of(title, fault):
                for severity in _severities(fault):
                    entry = ("classes", title, "remedy")
                    found[Kind(name, severity, fault.blame, fault.remedy, catalog.name, entry)] = None
    for catalog in [one for one in every if one.unknown] or every[:1]:
        other = catalog.rest
        found[Kind("any other", other.severity, other.blame, other.remedy, catalog.name, ("unknown", "remedy"))] = None
    return list(found)


def names_of(title: str, fault: FaultClass) -> list[str]:
    """Return the names under which faults of a class come: each XID and SXID under its own."""
    return list(dict.fromkeys([*fault.numbers(), *([title] if fault.by_name else [])]))


def _severities(fault: FaultClass) -> list[Severity]:
    """Return the severities of a class: informational as long as it has been seen less often than its `count`."""
    return [fault.severity] if fault.count == 1 else [fault.severity, "informational"]


@dataclass(frozen=True)
class Reach:
    """What one rule matches, and what of that is left to it by the rules before. Sets of kinds are bits of a number."""

    title: str
    rule: FaultRule
    kinds: int
    left: Mapping[Spot, int]

    @property
    def answers(self) -> int:
        """The kinds that it answers somewhere."""
        every = 0
        for kinds in self.left.values():
            every |= kinds
        return every

    def meets(self, later: Reach) -> tuple[Spot, int] | None:
        """Return a spot and the kinds there that this rule answers and a later one would answer too."""
        common = ((spot, left & later.kinds) for spot, left in self.left.items() if spot in later.left)
        return next(((spot, kinds) for spot, kinds in common if kinds), None)

    def within(self, later: Reach) -> bool:
        """Whether all that this rule answers, a later one would answer too."""
        return all(not left & ~(later.kinds if spot in later.left else 0) for spot, left in self.left.items())


def reaches(policy: LifecyclePolicy, kinds: Sequence[Kind]) -> Iterator[Reach]:
    """Yield how far each rule reaches, in their order: the first that matches wins."""
    taken: dict[Spot, int] = {}
    for title, rule in policy.faults.items():
        mine = sum(1 << number for number, kind in enumerate(kinds) if _matches(rule, kind))
        states = rule.states or policy.states
        uses = (True, False) if rule.in_use is None else (rule.in_use,)
        spots = [(state, use) for state in states for use in uses]
        yield Reach(title, rule, mine, {spot: mine & ~taken.get(spot, 0) for spot in spots})
        for spot in spots:
            taken[spot] = taken.get(spot, 0) | mine


def among(kinds: Sequence[Kind], bits: int) -> list[Kind]:
    """Return the kinds that a number stands for."""
    return [kind for number, kind in enumerate(kinds) if bits >> number & 1]


def remedy_of(rule: FaultRule, kind: Kind) -> str:
    """Return the remedy with which a rule starts."""
    return kind.remedy if rule.remedy == "class" else rule.remedy


def targets(policy: LifecyclePolicy, rule: FaultRule, kinds: Sequence[Kind]) -> list[str]:
    """Return the states to which a rule sends nodes with these faults, all the way up the ladder."""
    if rule.timing == "record" or rule.to:
        return [rule.to] if rule.to and rule.timing != "record" and kinds else []
    rungs = {str(name): rung for name, rung in policy.ladder.rungs.items()}
    found: dict[str, None] = {}
    for remedy in sorted({remedy_of(rule, kind) for kind in kinds}):
        here: str | None = remedy
        while here in rungs:
            found[rungs[here].to] = None
            here = rungs[here].then
    return list(found)


def _matches(rule: FaultRule, kind: Kind) -> bool:
    return (
        (not rule.severity or kind.severity in rule.severity)
        and (not rule.classes or kind.name in rule.classes)
        and (not rule.blame or kind.blame in rule.blame)
    )
