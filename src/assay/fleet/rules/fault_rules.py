"""What a policy answers to faults: rules that never match, that contradict each other, or that lead nowhere.

Fault catalogues against each other, and against the policy: whose fault may move a node.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from assay.fleet.check import FilePosition, RuleFinding, rule
from assay.fleet.fault_rule_coverage import (
    FaultKind,
    RuleReach,
    compute_rule_reach,
    decode_kinds,
    find_starting_remedy,
    list_fault_kinds,
    list_fault_names,
    list_target_states,
)
from assay.fleet.repository_draft import RepositoryDraft
from assay.fleet.rules.dangling_names import suggest_name
from assay.model.specs.fault_catalog import FaultCatalog, select_active_catalogs
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.policy_sections import FaultRule


@rule("ASY0072", "a rule for an unknown fault class", why="The rule would never match.", needs=(FaultCatalog,))
def unknown_class(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find fault rules whose classes no catalogue holds, or that come under other names: each XID as `gpu.xid.N`."""
    catalogs = draft.specs_of_model(FaultCatalog).values()
    known = {name: fault for catalog in catalogs for name, fault in catalog.classes.items()}
    for policy in draft.specs_of_model(LifecyclePolicy).values():
        for title, answer in policy.faults.items():
            for name in answer.classes:
                comes_as = list_fault_names(name, known[name]) if name in known else [name]
                if not any(catalog.find_class(name) for catalog in catalogs):
                    said = f"{title}: no FaultCatalog holds the class {name}"
                    yield RuleFinding(_at(draft, policy, title, "classes"), said, suggest_name(name, known))
                elif name not in comes_as:
                    said = f"{title}: faults of {name} come as {', '.join(comes_as)}"
                    yield RuleFinding(_at(draft, policy, title, "classes"), said, "name these instead")


@rule(
    "ASY0078",
    "two rules that contradict each other",
    why="Which of them holds would hang on their order, and on nobody's intention.",
    needs=(FaultCatalog,),
)
def contradicting_rules(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find rules that overlap with different answers. A special case before the general one is how it is meant."""
    for policy, kinds, rules in _policy_reach(draft):
        for first, later in combinations(rules, 2):
            common = first.find_overlap(later)
            if common and _action(first.rule) != _action(later.rule) and not first.within(later):
                (state, use), bits = common
                kind = decode_kinds(kinds, bits)[0]
                where = f"{state}, {'in use' if use else 'idle'}"
                said = f"{first.title} and {later.title} both match {kind.name} ({kind.severity}) in {where}"
                fix = f"take it out of one of them, or make {first.title} a special case of {later.title}"
                yield RuleFinding(_at(draft, policy, later.title), said, fix)


@rule("ASY0079", "a rule that never matches", why="What it promises would never happen.", needs=(FaultCatalog,))
def unreachable_fault_rule(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find rules that match no fault at all, or only what the rules before them take. The last one may be idle."""
    for policy, _, rules in _policy_reach(draft):
        for one in rules[:-1]:
            if not one.answered_kinds:
                said = "rules above take all that it matches" if one.kinds else "no fault class is like that"
                yield RuleFinding(_at(draft, policy, one.title), f"{one.title}: {said}", "move it up, or remove it")


@rule(
    "ASY0087",
    "a remedy that is no step of the ladder",
    why="The rule says that the node goes, and it would stay.",
    needs=(FaultCatalog,),
)
def missing_rung(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find faults that a rule sends up the ladder, by a remedy for which the ladder has no rung."""
    for policy, kinds, rules in _policy_reach(draft):
        lost: dict[FilePosition, str] = {}
        for one in rules:
            for kind in decode_kinds(kinds, one.answered_kinds) if _climbs(one.rule) else []:
                if (remedy := find_starting_remedy(one.rule, kind)) not in policy.ladder.rungs:
                    said = f"{kind.name}: {one.title} sends it up the ladder, which has no rung {remedy}"
                    lost.setdefault(_position_of(draft, policy, one, kind), said)
        for place, said in lost.items():
            yield RuleFinding(place, said, "add the rung, name another remedy, or let a rule above record it")


@rule("ASY0089", "a way that no edge draws", why="The node would stay where it is.", needs=(FaultCatalog,))
def missing_fault_edge(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find rules that send nodes from a state which they name to one that no edge leads to."""
    for policy, kinds, rules in _policy_reach(draft):
        for one in rules:
            for (state, _), bits in one.unclaimed.items() if one.rule.states and one.rule.timing != "record" else ():
                meant = list_target_states(policy, one.rule, decode_kinds(kinds, bits))
                undrawn = sorted(target for target in meant if not policy.has_edge(state, target))
                if undrawn:
                    said = f"{one.title} leads from {state} to {undrawn[0]}, but edges draw no {state} → {undrawn[0]}"
                    fix = f"add {undrawn[0]} to edges.{state}, or take {state} out of the rule"
                    yield RuleFinding(_at(draft, policy, one.title, "states"), said, fix)
                    break


def _policy_reach(draft: RepositoryDraft) -> Iterator[tuple[LifecyclePolicy, list[FaultKind], list[RuleReach]]]:
    """Yield each policy with the faults that can come and how far its rules reach; nothing without a catalogue."""
    kinds = list_fault_kinds(draft.specs_of_model(FaultCatalog).values())
    for policy in draft.specs_of_model(LifecyclePolicy).values() if kinds else ():
        yield policy, kinds, list(compute_rule_reach(policy, kinds))


def _at(draft: RepositoryDraft, policy: LifecyclePolicy, title: str, *entry: Any) -> FilePosition:
    return draft.find_position(f"LifecyclePolicy/{policy.name}", "faults", title, *entry)


def _action(answer: FaultRule) -> tuple[object, ...]:
    """Return what a rule does, without how it is written."""
    if answer.timing == "record":
        return (answer.remedy,)
    return (answer.timing, answer.remedy, answer.to, *(answer.while_pending if answer.timing == "pending" else ()))


def _climbs(answer: FaultRule) -> bool:
    return answer.timing != "record" and answer.to is None


def _position_of(draft: RepositoryDraft, policy: LifecyclePolicy, one: RuleReach, kind: FaultKind) -> FilePosition:
    """Return where a remedy is said: in the rule, or in the catalogue's entry."""
    if one.rule.remedy != "class":
        return _at(draft, policy, one.title, "remedy")
    return draft.find_position(f"FaultCatalog/{kind.catalog}", *kind.entry)


@rule("ASY0140", "a fault in two catalogues", why="They may judge it differently, and nobody could say which counts.")
def fault_in_two_catalogs(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find classes, XIDs and SXIDs of which two catalogues speak, neither through extending the other."""
    owners: dict[str, str] = {}
    for catalog in select_active_catalogs(draft.specs_of_model(FaultCatalog).values()):
        for title, fault in catalog.classes.items():
            for name in dict.fromkeys([title, *fault.list_xid_names()]):
                other = owners.setdefault(name, catalog.name)
                if other != catalog.name:
                    place = draft.find_position(f"FaultCatalog/{catalog.name}", "classes", title)
                    fix = f"let {catalog.name} say `extends: {other}`, or take it out of one of them"
                    yield RuleFinding(place, f"{name} stands in the catalogues {other} and {catalog.name}", fix)


@rule(
    "ASY0141",
    "an application's fault that moves a node",
    why="A customer's mistake would take healthy nodes out of service.",
    needs=(FaultCatalog,),
)
def application_fault_moves_node(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find faults that are the application's own, and that a rule of the policy answers with a move."""
    kinds = list_fault_kinds(draft.specs_of_model(FaultCatalog).values())
    told: dict[FilePosition, str] = {}
    for policy in draft.specs_of_model(LifecyclePolicy).values():
        for reach in compute_rule_reach(policy, kinds):
            for kind in decode_kinds(kinds, reach.answered_kinds):
                if kind.blame == "application" and list_target_states(policy, reach.rule, [kind]):
                    place = draft.find_position(f"FaultCatalog/{kind.catalog}", *kind.entry)
                    told.setdefault(place, f"{kind.name} is the application's, and {reach.title} moves the node for it")
    for place, said in told.items():
        yield RuleFinding(place, said, "blame what is at fault, or let a rule above record it")


@rule("ASY0142", "an echo of a fault that is not there", why="It would never be told apart from its cause.")
def secondary_of_unknown_fault(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find classes that follow one which no catalogue holds."""
    catalogs = select_active_catalogs(draft.specs_of_model(FaultCatalog).values())
    for catalog in catalogs:
        for title, fault in catalog.classes.items():
            for number, name in enumerate(fault.follows.classes if fault.follows else ()):
                if not any(one.find_class(name) for one in catalogs):
                    path = ("classes", title, "follows", "classes", number)
                    known = {known for one in catalogs for known in one.classes}
                    said = f"{title} follows {name}, which no FaultCatalog holds"
                    yield RuleFinding(
                        draft.find_position(f"FaultCatalog/{catalog.name}", *path), said, suggest_name(name, known)
                    )
