"""What a policy answers to faults: rules that never match, that contradict each other, or that lead nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from assay.fleet.answers import Kind, Reach, among, kinds_of, names_of, reaches, remedy_of, targets
from assay.fleet.draft import Draft
from assay.fleet.rules.book import Finding, Place, rule
from assay.fleet.rules.names import nearest
from assay.model.faults import FaultCatalog
from assay.model.policy import FaultRule, LifecyclePolicy


@rule("ASY0072", "a rule for an unknown fault class", why="The rule would never match.", needs=(FaultCatalog,))
def unknown_class(draft: Draft) -> Iterator[Finding]:
    """Find fault rules whose classes no catalogue holds, or that come under other names: each XID as `gpu.xid.N`."""
    catalogs = draft.of(FaultCatalog).values()
    known = {name: fault for catalog in catalogs for name, fault in catalog.classes.items()}
    for policy in draft.of(LifecyclePolicy).values():
        for title, answer in policy.faults.items():
            for name in answer.classes:
                comes_as = names_of(name, known[name]) if name in known else [name]
                if not any(catalog.class_of(name) for catalog in catalogs):
                    said = f"{title}: no FaultCatalog holds the class {name}"
                    yield Finding(_at(draft, policy, title, "classes"), said, nearest(name, known))
                elif name not in comes_as:
                    said = f"{title}: faults of {name} come as {', '.join(comes_as)}"
                    yield Finding(_at(draft, policy, title, "classes"), said, "name these instead")


@rule(
    "ASY0078",
    "two rules that contradict each other",
    why="Which of them holds would hang on their order, and on nobody's intention.",
    needs=(FaultCatalog,),
)
def contradicting_rules(draft: Draft) -> Iterator[Finding]:
    """Find rules that overlap with different answers. A special case before the general one is how it is meant."""
    for policy, kinds, rules in _answers(draft):
        for first, later in combinations(rules, 2):
            common = first.meets(later)
            if common and _action(first.rule) != _action(later.rule) and not first.within(later):
                (state, use), bits = common
                kind = among(kinds, bits)[0]
                where = f"{state}, {'in use' if use else 'idle'}"
                said = f"{first.title} and {later.title} both match {kind.name} ({kind.severity}) in {where}"
                fix = f"take it out of one of them, or make {first.title} a special case of {later.title}"
                yield Finding(_at(draft, policy, later.title), said, fix)


@rule("ASY0079", "a rule that never matches", why="What it promises would never happen.", needs=(FaultCatalog,))
def idle_rule(draft: Draft) -> Iterator[Finding]:
    """Find rules that match no fault at all, or only what the rules before them take. The last one may be idle."""
    for policy, _, rules in _answers(draft):
        for one in rules[:-1]:
            if not one.answers:
                said = "rules above take all that it matches" if one.kinds else "no fault class is like that"
                yield Finding(_at(draft, policy, one.title), f"{one.title}: {said}", "move it up, or remove it")


@rule(
    "ASY0087",
    "a remedy that is no step of the ladder",
    why="The rule says that the node goes, and it would stay.",
    needs=(FaultCatalog,),
)
def missing_rung(draft: Draft) -> Iterator[Finding]:
    """Find faults that a rule sends up the ladder, by a remedy for which the ladder has no rung."""
    for policy, kinds, rules in _answers(draft):
        lost: dict[Place, str] = {}
        for one in rules:
            for kind in among(kinds, one.answers) if _climbs(one.rule) else []:
                if (remedy := remedy_of(one.rule, kind)) not in policy.ladder.rungs:
                    said = f"{kind.name}: {one.title} sends it up the ladder, which has no rung {remedy}"
                    lost.setdefault(_said_at(draft, policy, one, kind), said)
        for place, said in lost.items():
            yield Finding(place, said, "add the rung, name another remedy, or let a rule above record it")


@rule("ASY0089", "a way that no edge draws", why="The node would stay where it is.", needs=(FaultCatalog,))
def undrawn_way(draft: Draft) -> Iterator[Finding]:
    """Find rules that send nodes from a state which they name to one that no edge leads to."""
    for policy, kinds, rules in _answers(draft):
        for one in rules:
            for (state, _), bits in one.left.items() if one.rule.states and one.rule.timing != "record" else ():
                meant = targets(policy, one.rule, among(kinds, bits))
                undrawn = sorted(target for target in meant if not policy.may_go(state, target))
                if undrawn:
                    said = f"{one.title} leads from {state} to {undrawn[0]}, but edges draw no {state} → {undrawn[0]}"
                    fix = f"add {undrawn[0]} to edges.{state}, or take {state} out of the rule"
                    yield Finding(_at(draft, policy, one.title, "states"), said, fix)
                    break


def _answers(draft: Draft) -> Iterator[tuple[LifecyclePolicy, list[Kind], list[Reach]]]:
    """Yield each policy with the faults that can come and how far its rules reach; nothing without a catalogue."""
    kinds = kinds_of(draft.of(FaultCatalog).values())
    for policy in draft.of(LifecyclePolicy).values() if kinds else ():
        yield policy, kinds, list(reaches(policy, kinds))


def _at(draft: Draft, policy: LifecyclePolicy, title: str, *entry: Any) -> Place:
    return draft.at(f"LifecyclePolicy/{policy.name}", "faults", title, *entry)


def _action(answer: FaultRule) -> tuple[object, ...]:
    """Return what a rule does, without how it is written."""
    if answer.timing == "record":
        return (answer.remedy,)
    return (answer.timing, answer.remedy, answer.to, *(answer.while_pending if answer.timing == "pending" else ()))


def _climbs(answer: FaultRule) -> bool:
    return answer.timing != "record" and answer.to is None


def _said_at(draft: Draft, policy: LifecyclePolicy, one: Reach, kind: Kind) -> Place:
    """Return where a remedy is said: in the rule, or in the catalogue's entry."""
    if one.rule.remedy != "class":
        return _at(draft, policy, one.title, "remedy")
    return draft.at(f"FaultCatalog/{kind.catalog}", *kind.entry)
