"""Compares two policies and fault catalogues: their answers by state and fault class, and every setting."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any

from pydantic import BaseModel

from assay.decide.plan.inputs import FleetRevision, find_spec_line
from assay.declare.rules.fault_rules import list_fault_names
from assay.model.facts import frozen
from assay.model.faults.fault_record import FaultBlame, FaultSeverity, Remedy
from assay.model.specs.fault_catalog import FaultCatalog
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.policy_response import PolicyResponse, respond_to_fault

UNCOMPARED_FIELDS = {"kind", "name", "extends", "description", "owner", "sources", "source", "summary"}
CABLE_FIELDS = {"site", "nodes", "rails", "adapter_ports", "planes", "rate", "leaves", "spines", "lengths", "cables"}
UNKNOWN_FAULT = "any other"
FaultTreatmentKey = tuple[str, FaultSeverity, FaultBlame, Remedy]


@frozen
class ResponseChange:
    """Cases whose answer changes from `old` to `new`. None: the state or the class does not exist.

    `cases` are (state, fault class, in use: None for either way).
    """

    old: PolicyResponse | None
    new: PolicyResponse | None
    cases: tuple[tuple[str, str, bool | None], ...]


@frozen
class SettingDifference:
    """One changed setting, by its dotted path; "" if it did not exist before, or does not exist after."""

    path: str
    """The setting, by its dotted path."""
    old: str
    """Its value before; "" if it did not exist."""
    new: str
    """Its value after; "" if it does not exist any more."""
    line: str
    """The file and line."""


def compare_responses(before: FleetRevision, after: FleetRevision) -> tuple[ResponseChange, ...]:
    """Return every case whose answer changes, grouped by old and new answer."""
    if before.policy == after.policy and before.catalog == after.catalog:
        return ()
    states = dict.fromkeys([*before.policy.states, *after.policy.states])
    old, new = dict(_kinds(before.catalog)), dict(_kinds(after.catalog))
    groups: dict[tuple[PolicyResponse | None, PolicyResponse | None], dict[tuple[str, str], set[bool]]] = defaultdict(
        dict
    )
    was, will = _answerer(before.policy), _answerer(after.policy)
    for state in states:
        for fault in dict.fromkeys([*old, *new]):
            for in_use in (False, True):
                answers = was(state, old.get(fault), in_use), will(state, new.get(fault), in_use)
                if answers[0] != answers[1]:
                    groups[answers].setdefault((state, fault), set()).add(in_use)
    return tuple(ResponseChange(*answers, tuple(_cases(cases))) for answers, cases in groups.items())


def _kinds(catalog: FaultCatalog) -> Iterator[tuple[str, FaultTreatmentKey]]:
    """Yield every possible fault: each XID under its own name, also with its severity below its count."""
    for title, fault in catalog.classes.items():
        for name in list_fault_names(title, fault):
            yield name, (name, fault.severity, fault.blame, fault.remedy)
            if fault.count > 1:
                yield f"{name} below its count", (name, "informational", fault.blame, fault.remedy)
    other = catalog.default_treatment
    yield UNKNOWN_FAULT, (UNKNOWN_FAULT, other.severity, other.blame, other.remedy)


def _answerer(policy: LifecyclePolicy) -> Callable[[str, FaultTreatmentKey | None, bool], PolicyResponse | None]:
    """Return what answers a fault of a node in a state, with None where the state or the class does not exist.

    Faults that no rule names differ only in how they are treated: a few answers serve all.
    """
    named = {name for rule in policy.faults.values() for name in rule.classes}
    respond = cache(partial(respond_to_fault, policy))

    def answer(state: str, kind: FaultTreatmentKey | None, in_use: bool) -> PolicyResponse | None:
        if not kind or state not in policy.states:
            return None
        name, *treatment = kind
        return respond(state, name if name in named else UNKNOWN_FAULT, *treatment, in_use)

    return answer


def _cases(cases: Mapping[tuple[str, str], set[bool]]) -> Iterator[tuple[str, str, bool | None]]:
    for (state, fault), uses in cases.items():
        yield state, fault, None if len(uses) == 2 else next(iter(uses))


def compare_policy_settings(before: FleetRevision, after: FleetRevision) -> tuple[SettingDifference, ...]:
    """Return every setting of the policy that changes, without the fault rules: see `compare_responses`."""
    document = f"LifecyclePolicy/{after.policy.name}"
    return compare_values(after, before.policy, after.policy, document, skip={*UNCOMPARED_FIELDS, "faults"})


def compare_fault_classes(before: FleetRevision, after: FleetRevision) -> tuple[SettingDifference, ...]:
    """Return every change in how faults are recognised and treated."""
    differences = compare_values(after, before.catalog, after.catalog, "", skip={*UNCOMPARED_FIELDS, "investigate"})
    return tuple(replace(difference, line=after.catalog_line(difference.path)) for difference in differences)


def compare_profiles(before: FleetRevision, after: FleetRevision) -> tuple[SettingDifference, ...]:
    """Return every change of what automation may do to the nodes of a profile."""
    return _compare_named(after, before.fleet.profiles, after.fleet.profiles, "ManagementProfile", UNCOMPARED_FIELDS)


def compare_bundles(before: FleetRevision, after: FleetRevision) -> tuple[SettingDifference, ...]:
    """Return the changes of a bundle's old components, except their versions."""
    was, will = before.fleet.bundles, after.fleet.bundles
    differences = []
    for name in sorted(was.keys() & will.keys()):
        old, new = ({part.name: part for part in bundle.components} for bundle in (was[name], will[name]))
        kept = old.keys() & new.keys()
        old, new = ({part: parts[part] for part in parts if part in kept} for parts in (old, new))
        for difference in compare_values(after, old, new, "", skip={"version"}):
            line = _line_of_component(after, name, difference.path)
            differences.append(replace(difference, path=f"{name}.{difference.path}", line=line))
    return tuple(differences)


def compare_fabric_requirements(before: FleetRevision, after: FleetRevision) -> tuple[SettingDifference, ...]:
    """Return the changes of a fabric's requirements; its cables are compared elsewhere."""
    skip = {*UNCOMPARED_FIELDS, *CABLE_FIELDS}
    return _compare_named(after, before.fleet.designs, after.fleet.designs, "FabricDesign", skip)


def _compare_named(
    after: FleetRevision, was: Mapping[str, BaseModel], will: Mapping[str, BaseModel], kind: str, skip: set[str]
) -> tuple[SettingDifference, ...]:
    """Return every difference between specs of one kind that both revisions have, with the spec's name in its path."""
    return tuple(
        replace(difference, path=f"{name}.{difference.path}")
        for name in sorted(was.keys() & will.keys())
        for difference in compare_values(after, was[name], will[name], f"{kind}/{name}", skip=skip)
    )


def _line_of_component(after: FleetRevision, bundle: str, path: str) -> str:
    name, _, field = path.partition(".")
    places = [part.name for part in after.fleet.bundles[bundle].components]
    return find_spec_line(after.fleet, f"FirmwareBundle/{bundle}", f"components.{places.index(name)}.{field}")


def compare_values(
    after: FleetRevision, old: Any, new: Any, document: str, skip: set[str]
) -> tuple[SettingDifference, ...]:
    """Return every value that differs between two models or mappings, except the fields in `skip`, at any depth."""
    if old == new:
        return ()
    was, will = dict(_flatten(old, skip)), dict(_flatten(new, skip))
    paths = [path for path in dict.fromkeys([*was, *will]) if was.get(path, "") != will.get(path, "")]
    return tuple(
        SettingDifference(path, was.get(path, ""), will.get(path, ""), find_spec_line(after.fleet, document, path))
        for path in paths
    )


def _flatten(value: Any, skip: set[str], path: str = "") -> Iterator[tuple[str, str]]:
    """Yield every plain value by its dotted path; a list of plain values is one."""
    if isinstance(value, BaseModel):
        value = value.model_dump()
    if isinstance(value, Mapping):
        for name, item in value.items():
            if name not in skip:
                yield from _flatten(item, skip, f"{path}.{name}".lstrip("."))
    elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        for number, item in enumerate(value):
            yield from _flatten(item, skip, f"{path}.{number}")
    elif value is not None and value != []:
        yield path, ", ".join(map(str, value)) if isinstance(value, list) else _plain(value)


def _plain(value: Any) -> str:
    """Return a value as YAML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)
