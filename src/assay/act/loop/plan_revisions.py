"""Reads the two revisions of a plan. A base that cannot be read in parts does not block the plan of its repair.

The parts that cannot be read are taken from the head, so they compare as equal; the plan names each of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from assay.decide.plan.fleet_revision import FleetRevision
from assay.declare.fleet_loader import build_fleet, build_readable_fleet, read_draft
from assay.declare.repository.acting_files import read_acting_files
from assay.declare.repository.repository_draft import RepositoryDraft
from assay.declare.spec_values_read_by_checks import read_check_inputs
from assay.declare.yaml_document import ParseCache
from assay.model.errors import AssayError
from assay.model.fleet import FIELD_OF_KIND, Fleet
from assay.model.node import Node
from assay.model.specs.fabric.fabric_design import FabricDesign
from assay.model.text.text_lists import format_count, format_nodes

Unread = tuple[str, str]
"""`file:line`, and why it cannot be read."""


def load_plan_revisions(
    root: Path, base: str, head: str = "", cache: ParseCache | None = None
) -> tuple[FleetRevision, FleetRevision]:
    """Return base and head of a plan; "" is the working tree.

    Raises AssayError if the head has a mistake, or if git does not know a revision.
    """
    cache = cache or ParseCache()
    was, will = (read_draft(root, rev=rev or None, cache=cache) for rev in (base, head))
    after = _make_revision(will, _build_head(will, head), head)
    unread = list(_list_unread_files(was))
    fleet, dangling = mend_fleet(build_readable_fleet(was), after.fleet, was, will)
    before = _make_revision(was, fleet, base)
    return replace(before, unread=(*unread, *dangling)), after


def _build_head(draft: RepositoryDraft, rev: str) -> Fleet:
    try:
        return build_fleet(draft)
    except AssayError as error:
        name = rev or "the working tree"
        fix = f"`assay check` on {name} lists every mistake; a plan needs a head without mistakes"
        raise AssayError(f"{name} cannot be read: {error.what}", where=error.where, fix=fix) from error


def _make_revision(draft: RepositoryDraft, fleet: Fleet, rev: str) -> FleetRevision:
    return FleetRevision(
        fleet,
        read_check_inputs(draft.tree),
        rev or "the working tree",
        read_acting_files(draft.tree),
        {host.name: host for host in draft.hosts},
    )


def _list_unread_files(draft: RepositoryDraft) -> Iterator[Unread]:
    """Yield the first problem of each file, with the number of the others."""
    found: dict[str, list[Unread]] = {}
    for problem in sorted(draft.problems):
        found.setdefault(problem.file, []).append((problem.where, problem.message))
    for (where, message), *others in found.values():
        yield where, f"{message}, and {format_count(len(others), 'more mistake')}" if others else message


def mend_fleet(
    fleet: Fleet, head: Fleet, draft: RepositoryDraft, head_draft: RepositoryDraft
) -> tuple[Fleet, list[Unread]]:
    """Return the base's fleet with the parts that cannot be used taken from the head, and what dangles in it."""
    fleet = _take_refused_specs(fleet, head, draft, head_draft)
    fleet = replace(fleet, nodes=_take_unread_nodes(fleet, head, draft))
    unread: list[Unread] = []
    for kind, fits in (("LifecyclePolicy", _has_one_policy), ("FaultCatalog", _has_one_catalog)):
        if why := fits(fleet):
            unread += [("specs", why)] if not draft.problems else []
            fleet = replace(fleet, **{FIELD_OF_KIND[kind]: getattr(head, FIELD_OF_KIND[kind])})
    fleet, dangling = _take_dangling_nodes(fleet, head)
    return _take_unfit_designs(fleet, head, [*unread, *dangling])


def _take_refused_specs(fleet: Fleet, head: Fleet, draft: RepositoryDraft, head_draft: RepositoryDraft) -> Fleet:
    """Return the fleet with the head's specs where the base's cannot be read."""
    if not draft.refused:
        return fleet
    files = {problem.file for problem in draft.problems}
    lost = {f"{one.kind}/{one.name}" for one in draft.refused}
    lost |= {key for key, entry in head_draft.spec_files.items() if entry.document.file in files}
    found: dict[str, Mapping[str, Any]] = {}
    for kind, place in FIELD_OF_KIND.items():
        own, theirs = getattr(fleet, place), getattr(head, place)
        found[place] = {**{name: spec for name, spec in theirs.items() if f"{kind}/{name}" in lost}, **own}
    return replace(fleet, **found)  # type: ignore[arg-type]  # each place holds specs of its own kind


def _take_unread_nodes(fleet: Fleet, head: Fleet, draft: RepositoryDraft) -> Mapping[str, Node]:
    """Return the nodes; those that the base declares and nobody can read are as in the head."""
    if draft.all_hosts_read and all(host.settings for host in draft.hosts):
        return fleet.nodes
    if not draft.tree.files("inventory"):
        return fleet.nodes
    named = None if not draft.all_hosts_read else {host.name for host in draft.hosts}
    lost = {name: node for name, node in head.nodes.items() if named is None or name in named}
    return {**lost, **fleet.nodes}


def _has_one_policy(fleet: Fleet) -> str:
    return "" if len(fleet.policies) == 1 else f"there are {len(fleet.policies)} lifecycle policies"


def _has_one_catalog(fleet: Fleet) -> str:
    try:
        return "" if fleet.fault_catalog else "there is no fault catalogue"
    except AssayError as error:
        return error.what


def _take_dangling_nodes(fleet: Fleet, head: Fleet) -> tuple[Fleet, list[Unread]]:
    """Return the fleet with the head's nodes and specs where a name of the base leads nowhere."""
    dangling = {name for name, node in fleet.nodes.items() if not _is_resolved(fleet, node)}
    if not dangling:
        return fleet, []
    theirs = {name: head.nodes[name] for name in dangling if name in head.nodes}
    kept = {name: node for name, node in fleet.nodes.items() if name not in dangling}
    specs = {node.spec: head.node_specs[node.spec] for node in theirs.values()}
    bundles = {spec.firmware: head.bundles[spec.firmware] for spec in specs.values()}
    profiles = {node.profile: head.profiles[node.profile] for node in theirs.values()}
    mended = replace(
        fleet,
        nodes={**kept, **theirs},
        node_specs={**fleet.node_specs, **specs},
        bundles={**bundles, **fleet.bundles},
        profiles={**profiles, **fleet.profiles},
    )
    why = f"{format_nodes(sorted(dangling))}: a spec, profile or bundle that does not exist"
    return mended, [("inventory", why)]


def _is_resolved(fleet: Fleet, node: Node) -> bool:
    spec = fleet.node_specs.get(node.spec)
    return spec is not None and spec.firmware in fleet.bundles and node.profile in fleet.profiles


def _take_unfit_designs(fleet: Fleet, head: Fleet, unread: list[Unread]) -> tuple[Fleet, list[Unread]]:
    """Return the fleet with the head's designs where the base's names nodes that are not there, or have other rails."""
    unfit = [name for name, design in fleet.designs.items() if not _is_compilable(fleet, design)]
    if not unfit:
        return fleet, unread
    designs = {name: design for name, design in fleet.designs.items() if name not in unfit}
    designs |= {name: head.designs[name] for name in unfit if name in head.designs}
    lines = [(fleet.lines.get((f"FabricDesign/{name}", "nodes"), "specs/fabrics"), name) for name in unfit]
    missing = [(line, f"{name} does not fit the nodes of the inventory") for line, name in lines]
    nodes = {node: head.nodes[node] for name in designs for node in designs[name].node_names() if node in head.nodes}
    return replace(fleet, designs=designs, nodes={**nodes, **fleet.nodes}), [*unread, *missing]


def _is_compilable(fleet: Fleet, design: FabricDesign) -> bool:
    nodes = [fleet.nodes.get(name) for name in design.node_names()]
    return all(node is not None and len(node.hca_guids) == design.adapters_per_node for node in nodes)
