"""What the policy and the fault catalogue will say otherwise: answers by state and fault class, and every setting."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from assay.fleet.answers import names_of
from assay.lifecycle.answers import Answer, answer_to
from assay.model.faults import Blame, FaultCatalog, Remedy, Severity
from assay.model.firmware import FirmwareBundle
from assay.model.policy import LifecyclePolicy
from assay.plan.declared import Declared, line_of

PAPER = {"kind", "name", "extends", "description", "owner", "sources", "source", "summary"}
CABLES = {"site", "nodes", "rails", "rate", "leaves", "spines", "lengths", "cables"}
UNKNOWN = "any other"
Kind = tuple[str, Severity, Blame, Remedy]


@dataclass(frozen=True, slots=True)
class Reanswered:
    """Cases whose answer changes from `old` to `new`. None: the state or the class is not there.

    `cases` are (state, fault class, in use: None for either way).
    """

    old: Answer | None
    new: Answer | None
    cases: tuple[tuple[str, str, bool | None], ...]


@dataclass(frozen=True, slots=True)
class Reset:
    """One setting that is said otherwise, by its dotted path; "" where there was or will be none."""

    path: str
    old: str
    new: str
    line: str


def reanswered(before: Declared, after: Declared) -> tuple[Reanswered, ...]:
    """Return every case whose answer changes, grouped by what it was and will be."""
    if before.policy == after.policy and before.catalog == after.catalog:
        return ()
    states = dict.fromkeys([*before.policy.states, *after.policy.states])
    old, new = dict(_kinds(before.catalog)), dict(_kinds(after.catalog))
    groups: dict[tuple[Answer | None, Answer | None], dict[tuple[str, str], set[bool]]] = defaultdict(dict)
    for state in states:
        for fault in dict.fromkeys([*old, *new]):
            for in_use in (False, True):
                said = (
                    _answer(before.policy, state, old.get(fault), in_use),
                    _answer(after.policy, state, new.get(fault), in_use),
                )
                if said[0] != said[1]:
                    groups[said].setdefault((state, fault), set()).add(in_use)
    return tuple(Reanswered(*said, tuple(_cases(cases))) for said, cases in groups.items())


def _kinds(catalog: FaultCatalog) -> Iterator[tuple[str, Kind]]:
    """Yield every fault that can come, each XID under its own name, and as it comes before its count is reached."""
    for title, fault in catalog.classes.items():
        for name in names_of(title, fault):
            yield name, (name, fault.severity, fault.blame, fault.remedy)
            if fault.count > 1:
                yield f"{name} below its count", (name, "informational", fault.blame, fault.remedy)
    other = catalog.rest
    yield UNKNOWN, (UNKNOWN, other.severity, other.blame, other.remedy)


def _answer(policy: LifecyclePolicy, state: str, kind: Kind | None, in_use: bool) -> Answer | None:
    return answer_to(policy, state, *kind, in_use) if kind and state in policy.states else None


def _cases(cases: Mapping[tuple[str, str], set[bool]]) -> Iterator[tuple[str, str, bool | None]]:
    for (state, fault), uses in cases.items():
        yield state, fault, None if len(uses) == 2 else next(iter(uses))


def resets(before: Declared, after: Declared) -> tuple[Reset, ...]:
    """Return every setting of the policy that changes, but the faults' rules, whose effect `reanswered` tells."""
    document = f"LifecyclePolicy/{after.policy.name}"
    return _resets(after, before.policy, after.policy, document, skip={*PAPER, "faults"})


def reclassed(before: Declared, after: Declared) -> tuple[Reset, ...]:
    """Return every change of how faults are recognised and treated."""
    found = _resets(after, before.catalog, after.catalog, "", skip={*PAPER, "investigate"})
    return tuple(replace(one, line=after.catalog_line(one.path)) for one in found)


def profile_resets(before: Declared, after: Declared) -> tuple[Reset, ...]:
    """Return every change of what automation may do to the nodes of a profile."""
    was, will = before.fleet.profiles, after.fleet.profiles
    return tuple(
        replace(one, path=f"{name}.{one.path}")
        for name in sorted(was.keys() & will.keys())
        for one in _resets(after, was[name], will[name], f"ManagementProfile/{name}", skip=PAPER)
    )


def bundle_resets(before: Declared, after: Declared) -> tuple[Reset, ...]:
    """Return what else than a version changes of a component that a bundle had before."""
    was, will = before.fleet.bundles, after.fleet.bundles
    return tuple(
        replace(one, path=f"{name}.{one.path}", line=_line_of_component(after, name, one.path))
        for name in sorted(was.keys() & will.keys())
        for one in _resets(after, _Parts(was[name], will[name]), _Parts(will[name], was[name]), "", skip={"version"})
    )


def fabric_resets(before: Declared, after: Declared) -> tuple[Reset, ...]:
    """Return what else than its cables changes of a fabric: what it is held to."""
    was, will = before.fleet.designs, after.fleet.designs
    return tuple(
        replace(one, path=f"{name}.{one.path}")
        for name in sorted(was.keys() & will.keys())
        for one in _resets(after, was[name], will[name], f"FabricDesign/{name}", skip={*PAPER, *CABLES})
    )


class _Parts:
    """The components of a bundle that another one has as well, by name."""

    def __init__(self, bundle: FirmwareBundle, other: FirmwareBundle) -> None:
        shared = {part.name for part in other.components}
        self._parts = {part.name: part.model_dump() for part in bundle.components if part.name in shared}

    def model_dump(self) -> dict[str, Any]:
        """Return plain data, as models do."""
        return self._parts


def _line_of_component(after: Declared, bundle: str, path: str) -> str:
    name, _, field = path.partition(".")
    places = [part.name for part in after.fleet.bundles[bundle].components]
    return line_of(after.fleet, f"FirmwareBundle/{bundle}", f"components.{places.index(name)}.{field}")


def _resets(after: Declared, old: Any, new: Any, document: str, skip: set[str]) -> tuple[Reset, ...]:
    if old == new:
        return ()
    was, will = dict(_flat(old.model_dump(), skip)), dict(_flat(new.model_dump(), skip))
    paths = [path for path in dict.fromkeys([*was, *will]) if was.get(path, "") != will.get(path, "")]
    return tuple(
        Reset(path, was.get(path, ""), will.get(path, ""), line_of(after.fleet, document, path)) for path in paths
    )


def _flat(value: Any, skip: set[str], path: str = "") -> Iterator[tuple[str, str]]:
    """Yield every plain value by its dotted path; a list of plain values is one."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            if name not in skip:
                yield from _flat(item, skip, f"{path}.{name}".lstrip("."))
    elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        for number, item in enumerate(value):
            yield from _flat(item, skip, f"{path}.{number}")
    elif value is not None and value != []:
        yield path, ", ".join(map(str, value)) if isinstance(value, list) else _plain(value)


def _plain(value: Any) -> str:
    """Return a value as YAML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)
