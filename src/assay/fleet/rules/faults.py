"""Fault catalogues against each other, and against the policy: whose fault may move a node."""

from __future__ import annotations

from collections.abc import Iterator

from assay.fleet.answers import among, kinds_of, reaches, targets
from assay.fleet.draft import Draft
from assay.fleet.rules.book import Finding, Place, rule
from assay.fleet.rules.names import nearest
from assay.model.faults import FaultCatalog, in_force
from assay.model.policy import LifecyclePolicy


@rule("ASY0140", "a fault in two catalogues", why="They may judge it differently, and nobody could say which counts.")
def fault_told_twice(draft: Draft) -> Iterator[Finding]:
    """Find classes, XIDs and SXIDs of which two catalogues speak, neither through extending the other."""
    owners: dict[str, str] = {}
    for catalog in in_force(draft.of(FaultCatalog).values()):
        for title, fault in catalog.classes.items():
            for name in dict.fromkeys([title, *fault.numbers()]):
                other = owners.setdefault(name, catalog.name)
                if other != catalog.name:
                    place = draft.at(f"FaultCatalog/{catalog.name}", "classes", title)
                    fix = f"let {catalog.name} say `extends: {other}`, or take it out of one of them"
                    yield Finding(place, f"{name} stands in the catalogues {other} and {catalog.name}", fix)


@rule(
    "ASY0141",
    "an application's fault that moves a node",
    why="A customer's mistake would take healthy nodes out of service.",
    needs=(FaultCatalog,),
)
def blamed_node(draft: Draft) -> Iterator[Finding]:
    """Find faults that are the application's own, and that a rule of the policy answers with a move."""
    kinds = kinds_of(draft.of(FaultCatalog).values())
    told: dict[Place, str] = {}
    for policy in draft.of(LifecyclePolicy).values():
        for reach in reaches(policy, kinds):
            for kind in among(kinds, reach.answers):
                if kind.blame == "application" and targets(policy, reach.rule, [kind]):
                    place = draft.at(f"FaultCatalog/{kind.catalog}", *kind.entry)
                    told.setdefault(place, f"{kind.name} is the application's, and {reach.title} moves the node for it")
    for place, said in told.items():
        yield Finding(place, said, "blame what is at fault, or let a rule above record it")


@rule("ASY0142", "an echo of a fault that is not there", why="It would never be told apart from its cause.")
def echo_of_nothing(draft: Draft) -> Iterator[Finding]:
    """Find classes that follow one which no catalogue holds."""
    catalogs = in_force(draft.of(FaultCatalog).values())
    for catalog in catalogs:
        for title, fault in catalog.classes.items():
            for number, name in enumerate(fault.follows.classes if fault.follows else ()):
                if not any(one.class_of(name) for one in catalogs):
                    path = ("classes", title, "follows", "classes", number)
                    known = {known for one in catalogs for known in one.classes}
                    said = f"{title} follows {name}, which no FaultCatalog holds"
                    yield Finding(draft.at(f"FaultCatalog/{catalog.name}", *path), said, nearest(name, known))
