"""Trend rules whose fault is unknown, that nothing proves right, or that never count."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from assay.declare.repository.repository_draft import RepositoryDraft
from assay.declare.repository_check import RuleFinding, rule
from assay.declare.rules.dangling_names import suggest_name
from assay.model.specs.fault_catalog import FaultCatalog
from assay.model.specs.trend_rules import TrendRules

EVERYTHING = "*"


@rule(
    "ASY0370",
    "a trend rule for an unknown fault class",
    why="A fault without a class gets the treatment of unknown faults, and a warning is no fault that is unknown.",
    needs=(FaultCatalog,),
)
def unknown_trend_fault(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find rules whose fault no catalogue has."""
    known = _list_classes(draft)
    for document in draft.specs_of_model(TrendRules).values():
        for name, one in document.rules.items():
            if one.fault not in known:
                place = draft.find_position(f"TrendRules/{document.name}", "rules", name, "fault")
                message = f"{name}: no FaultCatalog holds the class {one.fault}"
                yield RuleFinding(place, message, suggest_name(one.fault, known))


@rule(
    "ASY0371",
    "a trend rule that no fault proves right",
    why="Each of its warnings ends as wrong, and the rule loses its stage.",
    needs=(FaultCatalog,),
)
def unprovable_trend_rule(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find patterns in `failures` that match no fault of hardware."""
    known = _list_classes(draft)
    for document in draft.specs_of_model(TrendRules).values():
        for name, one in document.rules.items():
            for number, pattern in enumerate(one.failures):
                if not any(fnmatchcase(fault, pattern) for fault in known):
                    place = draft.find_position(f"TrendRules/{document.name}", "rules", name, "failures", number)
                    message = f"{name}: no fault is named like {pattern}"
                    yield RuleFinding(place, message, suggest_name(pattern, known))


@rule("ASY0372", "a trend rule that never counts", why="The first rule that matches a measurement counts.")
def unreached_trend_rule(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find rules below one that matches every measurement."""
    for document in draft.specs_of_model(TrendRules).values():
        for first, name in zip(_list_blockers(document), document.rules, strict=True):
            if first:
                place = draft.find_position(f"TrendRules/{document.name}", "rules", name)
                message = f"{name}: the rule {first} above it matches every measurement"
                yield RuleFinding(place, message, f"put it above {first}")


def _list_blockers(document: TrendRules) -> Iterator[str]:
    """Yield for each rule the first rule above it that matches every measurement, "" for none."""
    first = ""
    for name, one in document.rules.items():
        yield first
        first = first or (name if EVERYTHING in one.measurements else "")


def _list_classes(draft: RepositoryDraft) -> set[str]:
    """Return the name of every fault, by its class and by its XIDs."""
    catalogs = draft.specs_of_model(FaultCatalog).values()
    classes = {name: fault for catalog in catalogs for name, fault in catalog.classes.items()}
    return {*classes, *(number for fault in classes.values() for number in fault.list_xid_names())}
