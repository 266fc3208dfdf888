"""Names changes of specs that no other section of the plan shows: routes, quirks, monitoring, specs of no node.

A change of something that assay acts by, and that no other section of the plan shows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Literal

from assay.decide.plan.inputs import FleetRevision, find_spec_line
from assay.decide.plan.policy_changes import UNCOMPARED_FIELDS, SettingDifference, compare_values
from assay.declare.problems import SECRET_NAME
from assay.declare.secret_detection import find_secret_shape
from assay.model.facts import frozen
from assay.model.fleet import FIELD_OF_KIND
from assay.model.text.lists import format_count

ChangeTopic = Literal[
    "unread",
    "schedule",
    "gate",
    "ticket route",
    "known issue",
    "signer",
    "check",
    "playbook",
    "workflow",
    "suite",
    "setting",
    "spec",
]


@frozen
class OtherChange:
    """One change, its `file:line`, and the pools that it touches (all of them, if it is not known which).

    `weakens`: it lets more through than before, or lets somebody do more: a looser gate, a new signer.
    """

    topic: ChangeTopic
    """What it is about."""
    what: str
    """What changes."""
    line: str
    """The file and line."""
    pools: tuple[str, ...]
    """The pools that it touches; all of them if it is not known which."""
    weakens: bool = False


def replace_control_characters(text: str) -> str:
    """Return text that a terminal shows and does not obey."""
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in text)


def select_pools(after: FleetRevision, names: Iterable[str]) -> tuple[str, ...]:
    """Return those pools that the revision has; all of them if `names` is empty."""
    wanted = set(names)
    return tuple(pool for pool in after.pools if pool in wanted) if wanted else after.pools


COMPARED_KINDS = (
    "TicketRoute",
    "BmcQuirks",
    "Monitoring",
    "Checklists",
    "BurnIn",
    "CollectiveWorkload",
    "GoldenDigests",
    "ExpectedMachines",
    "Image",
    "Provisioning",
    "TrendRules",
    "AdapterNames",
)
"""Kinds that are compared here value by value."""
SHOWN_KINDS = ("NodeSpec", "FirmwareBundle", "FabricDesign", "FaultCatalog", "LifecyclePolicy", "ManagementProfile")
"""Kinds that have sections of their own."""
SHOWN_DIFFERENCES = 5
OF_NODES = ("NodeSpec", "FirmwareBundle", "ManagementProfile")
"""Kinds that touch only the nodes that use them. A change on a node has a section of its own."""
NO_POOLS = (*OF_NODES, "CollectiveWorkload", "TrendRules", "AdapterNames")
"""Kinds for which no pool has to be rehearsed, if no other section shows the change."""


def list_other_spec_changes(
    before: FleetRevision, after: FleetRevision, shown: Collection[str]
) -> Iterator[OtherChange]:
    """Yield the changes. `shown` are the specs (`Kind/name`) whose changes other sections show."""
    for kind in (*COMPARED_KINDS, *SHOWN_KINDS):
        place = FIELD_OF_KIND[kind]
        was, will = getattr(before.fleet, place), getattr(after.fleet, place)
        if was is not will:
            yield from _compare_kind(before, after, kind, was, will, shown)
    yield from _list_removed_components(before, after)


def _list_removed_components(before: FleetRevision, after: FleetRevision) -> Iterator[OtherChange]:
    """Yield each component that a bundle no longer has: nothing is applied, and nothing is judged any more."""
    was, will = before.fleet.bundles, after.fleet.bundles
    for name in sorted(was.keys() & will.keys()) if was is not will else ():
        left = {part.name for part in will[name].components}
        if was[name] is will[name] or left.issuperset(part.name for part in was[name].components):
            continue
        specs = {spec for spec, node_spec in after.fleet.node_specs.items() if node_spec.firmware == name}
        pools = tuple(sorted({node.pool for node in after.fleet.nodes.values() if node.spec in specs}))
        for part in was[name].components:
            if part.name not in left:
                text = f"FirmwareBundle {name}: {part.name} {part.version} is no longer in it, and is judged no more"
                line = find_spec_line(after.fleet, f"FirmwareBundle/{name}", "components")
                yield OtherChange("spec", text, line, pools, weakens=True)


def _compare_kind(
    before: FleetRevision,
    after: FleetRevision,
    kind: str,
    was: Mapping[str, Any],
    will: Mapping[str, Any],
    shown: Collection[str],
) -> Iterator[OtherChange]:
    topic: ChangeTopic = "ticket route" if kind == "TicketRoute" else "spec"
    for name in sorted(was.keys() | will.keys()):
        document = f"{kind}/{name}"
        old = was.get(name)
        new = will.get(name)
        if old is new or document in shown:
            continue
        pools = _find_pools(before, after, kind, old, new)
        if old is None or new is None:
            spec: Any = old or new
            use = f": tickets to {spec.sink}" if kind == "TicketRoute" else ""
            use = ", no node uses it" if kind in OF_NODES else use
            text = f"{kind} {name} is {'new' if old is None else 'removed'}{use}"
            yield OtherChange(topic, text, find_spec_line(after.fleet, document, ""), pools)
        elif differences := compare_values(after, old, new, document, UNCOMPARED_FIELDS):
            yield from _describe(topic, document, differences, pools)


def _find_pools(before: FleetRevision, after: FleetRevision, kind: str, old: Any, new: Any) -> tuple[str, ...]:
    """Return the pools that a change of a spec touches; all of them if it does not say which."""
    if kind in NO_POOLS:
        return ()
    if kind == "Image":
        labels = {spec.label for spec in (old, new) if spec}
        nodes = (*before.fleet.nodes.values(), *after.fleet.nodes.values())
        booting = {node.pool for node in nodes if node.image in labels}
        return select_pools(after, booting) if booting else ()
    if kind == "Provisioning":
        return tuple(sorted({pool for spec in (old, new) if spec for pool in select_pools(after, spec.pools)}))
    return after.pools


def _describe(
    topic: ChangeTopic, document: str, differences: tuple[SettingDifference, ...], pools: tuple[str, ...]
) -> Iterator[OtherChange]:
    """Yield a line for each of the first differences, and one for the rest."""
    title = document.replace("/", " ")
    for difference in differences[:SHOWN_DIFFERENCES]:
        values = f"{difference.old or 'none'} → {difference.new or 'none'}"
        is_secret = SECRET_NAME.search(difference.path) or find_secret_shape(values)
        value = "given otherwise" if is_secret else values
        yield OtherChange(topic, f"{title}: {difference.path}: {value}", difference.line, pools)
    if more := differences[SHOWN_DIFFERENCES:]:
        yield OtherChange(topic, f"{title}: {format_count(len(more), 'more value')}", more[0].line, pools)


def find_shown_specs(
    before: FleetRevision, after: FleetRevision, settings: Mapping[str, Iterable[str]], fabrics: Iterable[str]
) -> set[str]:
    """Return the specs (`Kind/name`) whose changes other sections show.

    `settings` are the paths of changed values by kind, such as `compute.limits.symbol_errors`; `fabrics` are recabled.
    """
    shown = {f"FabricDesign/{name}" for name in fabrics}
    for kind in SHOWN_KINDS:
        place = FIELD_OF_KIND[kind]
        names = {*getattr(before.fleet, place), *getattr(after.fleet, place)}
        paths = tuple(settings.get(kind, ()))
        shown |= {f"{kind}/{name}" for name in names if any(path.startswith(f"{name}.") for path in paths)}
        if kind in ("FaultCatalog", "LifecyclePolicy") and paths:
            shown |= {f"{kind}/{name}" for name in names}
    return shown | set(_list_used_specs(before)) | set(_list_used_specs(after))


def _list_used_specs(revision: FleetRevision) -> Iterator[str]:
    fleet = revision.fleet
    specs = {node.spec for node in fleet.nodes.values()}
    yield from (f"NodeSpec/{name}" for name in specs)
    yield from (f"ManagementProfile/{name}" for name in {node.profile for node in fleet.nodes.values()})
    yield from (f"FirmwareBundle/{fleet.node_specs[name].firmware}" for name in specs if name in fleet.node_specs)
