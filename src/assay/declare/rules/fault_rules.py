"""Fault rules of a policy that never match, contradict each other or lead nowhere; fault catalogues that overlap.

`list_fault_kinds` says which faults can occur, `compute_rule_reach` which rule of a policy answers each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

from assay.declare.check import FilePosition, RuleFinding, rule
from assay.declare.repository.draft import RepositoryDraft
from assay.declare.rules.dangling_names import suggest_name
from assay.model.decision import CONFIGURE
from assay.model.faults.fault_record import FaultBlame, FaultSeverity, Remedy
from assay.model.specs.check_catalog import CheckCatalog
from assay.model.specs.fault_catalog import FaultCatalog, FaultClass, select_active_catalogs
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.node.node_spec import NodeSpec
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
    kinds: dict[FaultKind, None] = {}
    every = select_active_catalogs(catalogs)
    for catalog in every:
        for title, fault in catalog.classes.items():
            entry: tuple[str, ...] = ("classes", title, "remedy")
            severities: list[FaultSeverity] = [fault.severity]
            if fault.count > 1:
                severities.append("informational")  # what a fault is below its `count`
            for name in list_fault_names(title, fault):
                for severity in severities:
                    kinds[FaultKind(name, severity, fault.blame, fault.remedy, catalog.name, entry)] = None
    for catalog in [catalog for catalog in every if catalog.unknown] or every[:1]:
        other = catalog.default_treatment
        entry = ("unknown", "remedy")
        kinds[FaultKind("any other", other.severity, other.blame, other.remedy, catalog.name, entry)] = None
    return list(kinds)


def list_fault_names(title: str, fault: FaultClass) -> list[str]:
    """Return the names of a class's faults: one for each XID and SXID, and the class's own name."""
    return list(dict.fromkeys([*fault.list_xid_names(), *([title] if fault.has_own_name else [])]))


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
    for title, each in policy.faults.items():
        matched = sum(1 << number for number, kind in enumerate(kinds) if _matches(each, kind))
        states = each.states or policy.states
        uses = (True, False) if each.in_use is None else (each.in_use,)
        spots = [(state, use) for state in states for use in uses]
        yield RuleReach(title, each, matched, {spot: matched & ~taken.get(spot, 0) for spot in spots})
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
    states: dict[str, None] = {}
    for remedy in sorted({find_starting_remedy(rule, kind) for kind in kinds}):
        rung: str | None = remedy
        while rung in rungs:
            states[rungs[rung].to] = None
            rung = rungs[rung].then
    return list(states)


def _matches(rule: FaultRule, kind: FaultKind) -> bool:
    return (
        (not rule.severity or kind.severity in rule.severity)
        and (not rule.classes or kind.name in rule.classes)
        and (not rule.blame or kind.blame in rule.blame)
    )


@rule("ASY0072", "a rule for an unknown fault class", needs=(FaultCatalog,))
def unknown_class(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The rule never matches."""
    catalogs = draft.specs_of_model(FaultCatalog).values()
    known = {name: fault for catalog in catalogs for name, fault in catalog.classes.items()}
    for place, title, name in _list_named_classes(draft):
        fault_names = list_fault_names(name, known[name]) if name in known else [name]
        if not any(catalog.find_class(name) for catalog in catalogs):
            message = f"{title}: no FaultCatalog holds the class {name}"
            yield RuleFinding(place, message, suggest_name(name, known))
        elif name not in fault_names:
            message = f"{title}: faults of {name} are named {', '.join(fault_names)}"
            yield RuleFinding(place, message, "name these instead")


def _list_named_classes(draft: RepositoryDraft) -> Iterator[tuple[FilePosition, str, str]]:
    """Yield place, title and name of each fault class in fault rules, windows of the ladder, and node specs."""
    for policy in draft.specs_of_model(LifecyclePolicy).values():
        for title, fault_rule in policy.faults.items():
            for name in fault_rule.classes:
                yield _at(draft, policy, title, "classes"), title, name
        for number, window in enumerate(policy.ladder.windows):
            place = draft.find_position(f"LifecyclePolicy/{policy.name}", "ladder", "windows", number, "classes")
            for name in window.classes:
                yield place, f"ladder.windows.{number}", name
    for spec in draft.specs_of_model(NodeSpec).values():
        for name in spec.usual_faults:
            yield draft.find_position(f"NodeSpec/{spec.name}", "usual_faults", name), "usual_faults", name


@rule("ASY0078", "two rules that contradict each other", needs=(FaultCatalog,))
def contradicting_rules(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Both rules match the same fault, and only their order decides which one counts."""
    # A special case before a general rule is no contradiction.
    for policy, kinds, rules in _policy_reach(draft):
        for first, later in combinations(rules, 2):
            common = first.find_overlap(later)
            if common and _action(first.rule) != _action(later.rule) and not first.within(later):
                (state, use), bits = common
                kind = decode_kinds(kinds, bits)[0]
                where = f"{state}, {'in use' if use else 'idle'}"
                message = f"{first.title} and {later.title} both match {kind.name} ({kind.severity}) in {where}"
                fix = f"take it out of one of them, or make {first.title} a special case of {later.title}"
                yield RuleFinding(_at(draft, policy, later.title), message, fix)


@rule("ASY0079", "a rule that never matches", needs=(FaultCatalog,))
def unreachable_fault_rule(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The policy never does what this rule says."""
    # The last rule is exempt.
    for policy, _, rules in _policy_reach(draft):
        for reach in rules[:-1]:
            if not reach.answered_kinds:
                message = f"{reach.title}: no fault class matches it"
                if reach.kinds:
                    message = f"{reach.title}: rules above it match everything that it matches"
                yield RuleFinding(_at(draft, policy, reach.title), message, "move it up, or remove it")


@rule("ASY0087", "a remedy that is no step of the ladder", needs=(FaultCatalog,))
def missing_rung(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The rule says that the node moves, but the node stays."""
    for policy, kinds, rules in _policy_reach(draft):
        missing: dict[FilePosition, str] = {}
        for reach in rules:
            if reach.rule.timing == "record" or reach.rule.to is not None or reach.rule.remedy == CONFIGURE:
                continue  # it does not use the ladder
            for kind in decode_kinds(kinds, reach.answered_kinds):
                if (remedy := find_starting_remedy(reach.rule, kind)) not in policy.ladder.rungs:
                    message = f"{kind.name}: {reach.title} sends it up the ladder, which has no rung {remedy}"
                    if reach.rule.remedy == "class":
                        place = draft.find_position(f"FaultCatalog/{kind.catalog}", *kind.entry)
                    else:
                        place = _at(draft, policy, reach.title, "remedy")
                    missing.setdefault(place, message)
        for place, message in missing.items():
            yield RuleFinding(place, message, "add the rung, name another remedy, or let a rule above record it")


@rule("ASY0089", "a move without an edge", needs=(FaultCatalog,))
def missing_fault_edge(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The node stays where it is."""
    for policy, kinds, rules in _policy_reach(draft):
        for reach in (reach for reach in rules if reach.rule.states and reach.rule.timing != "record"):
            for (state, _), bits in reach.unclaimed.items():
                targets = list_target_states(policy, reach.rule, decode_kinds(kinds, bits))
                if missing := sorted(target for target in targets if not policy.has_edge(state, target)):
                    to = missing[0]
                    message = f"{reach.title} moves nodes from {state} to {to}, but edges.{state} does not list {to}"
                    fix = f"add {to} to edges.{state}, or take {state} out of the rule"
                    yield RuleFinding(_at(draft, policy, reach.title, "states"), message, fix)
                    break


def _policy_reach(draft: RepositoryDraft) -> Iterator[tuple[LifecyclePolicy, list[FaultKind], list[RuleReach]]]:
    """Yield each policy with the faults that can occur and the reach of its rules; nothing without a catalogue."""
    kinds = list_fault_kinds(draft.specs_of_model(FaultCatalog).values())
    for policy in draft.specs_of_model(LifecyclePolicy).values() if kinds else ():
        yield policy, kinds, list(compute_rule_reach(policy, kinds))


def _at(draft: RepositoryDraft, policy: LifecyclePolicy, title: str, *entry: Any) -> FilePosition:
    return draft.find_position(f"LifecyclePolicy/{policy.name}", "faults", title, *entry)


def _action(fault_rule: FaultRule) -> tuple[object, ...]:
    """Return what a rule does, as values that can be compared."""
    if fault_rule.timing == "record":
        return (fault_rule.remedy,)
    at_once = fault_rule.while_pending if fault_rule.timing == "pending" else ()
    return (fault_rule.timing, fault_rule.remedy, fault_rule.to, *at_once)


@rule("ASY0140", "a fault in two catalogues")
def fault_in_two_catalogs(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The two may judge the fault differently, and nobody knows which one counts."""
    owners: dict[str, str] = {}
    for catalog in select_active_catalogs(draft.specs_of_model(FaultCatalog).values()):
        for title, fault in catalog.classes.items():
            for name in dict.fromkeys([title, *fault.list_xid_names()]):
                other = owners.setdefault(name, catalog.name)
                if other != catalog.name:
                    place = draft.find_position(f"FaultCatalog/{catalog.name}", "classes", title)
                    fix = f"write `extends: {other}` in {catalog.name}, or remove the fault from one of them"
                    yield RuleFinding(place, f"{name} is in both catalogues {other} and {catalog.name}", fix)


@rule("ASY0141", "an application's fault that moves a node", needs=(FaultCatalog,))
def application_fault_moves_node(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """A customer's mistake takes healthy nodes out of service."""
    kinds = list_fault_kinds(draft.specs_of_model(FaultCatalog).values())
    moving: dict[FilePosition, str] = {}
    for policy in draft.specs_of_model(LifecyclePolicy).values():
        for reach in compute_rule_reach(policy, kinds):
            for kind in decode_kinds(kinds, reach.answered_kinds):
                if kind.blame == "application" and list_target_states(policy, reach.rule, [kind]):
                    place = draft.find_position(f"FaultCatalog/{kind.catalog}", *kind.entry)
                    message = f"{kind.name} has the blame `application`, but {reach.title} moves the node for it"
                    moving.setdefault(place, message)
    for place, message in moving.items():
        yield RuleFinding(place, message, "correct the blame, or let a rule above record it")


@rule("ASY0142", "a fault that follows an unknown fault", needs=(FaultCatalog,))
def secondary_of_unknown_fault(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """assay cannot attribute the fault to its cause."""
    catalogs = select_active_catalogs(draft.specs_of_model(FaultCatalog).values())
    for catalog in catalogs:
        for title, fault in catalog.classes.items():
            for number, name in enumerate(fault.follows.classes if fault.follows else ()):
                if not any(other.find_class(name) for other in catalogs):
                    path = ("classes", title, "follows", "classes", number)
                    known = {known for other in catalogs for known in other.classes}
                    message = f"{title} follows {name}, which no FaultCatalog holds"
                    place = draft.find_position(f"FaultCatalog/{catalog.name}", *path)
                    yield RuleFinding(place, message, suggest_name(name, known))


@rule("ASY0284", "a proof that no check judges", needs=(FaultCatalog, CheckCatalog))
def unjudged_proof(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The load runs after each repair, but nobody looks at its results, so the repair is not proven."""
    counting = [check for _, check in draft.declared_checks if not check.report_only]
    judged = {part for check in counting if check.active for part in check.parts} | {check.name for check in counting}
    for catalog in draft.specs_of_model(FaultCatalog).values():
        for title, fault in catalog.classes.items():
            for part in fault.proof:
                if part not in judged:
                    place = draft.find_position(f"FaultCatalog/{catalog.name}", "classes", title, "proof")
                    yield RuleFinding(place, f"{title}: no check judges {part}", suggest_name(part, judged))
