"""Reads a fleet repository into a Fleet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from assay.fleet.draft import Draft, HostEntry
from assay.fleet.git import revision
from assay.fleet.problem import Problem
from assay.fleet.variables import NodeVariables
from assay.model.checks import CheckCatalog
from assay.model.design import FabricDesign
from assay.model.errors import Trouble
from assay.model.faults import FaultCatalog
from assay.model.firmware import FirmwareBundle
from assay.model.fleet import Fleet, Node
from assay.model.nodespec import NodeSpec
from assay.model.policy import LifecyclePolicy
from assay.model.profile import ManagementProfile


def load_fleet(root: Path, overlays: Sequence[Path] = ()) -> Fleet:
    """Read the repository at `root`; `overlays` are inventory sources that go over its own.

    Raises Trouble with the first mistake where a file cannot be read or does not fit its model. Mistakes of
    meaning (a dangling name, a serial number given twice) are for `assay.fleet.check` to find.
    """
    root = root.absolute()
    draft = Draft(root, overlays)
    if draft.problems:
        raise _trouble(draft.problems)
    commit, dirty = revision(root)
    return Fleet(
        root=root,
        nodes={host.name: node_of(host, host.read) for host in draft.hosts if host.read},
        node_specs=draft.of(NodeSpec),
        bundles=draft.of(FirmwareBundle),
        designs=draft.of(FabricDesign),
        faults=draft.of(FaultCatalog),
        policies=draft.of(LifecyclePolicy),
        profiles=draft.of(ManagementProfile),
        checks=draft.of(CheckCatalog),
        lines={key: line for spec in draft.files.values() for key, line in spec.lines()},
        commit=commit,
        dirty=dirty,
    )


def node_of(host: HostEntry, read: NodeVariables) -> Node:
    """Return the node that a host of the inventory is."""
    return Node(
        name=host.name,
        pool=host.pool,
        site=read.site,
        rack=read.rack,
        u=read.u,
        serial=read.serial_number,
        spec=read.node_spec,
        profile=read.profile,
        hca_guids=tuple(read.hca_guids),
        variables=host.variables,
    )


def _trouble(problems: Sequence[Problem]) -> Trouble:
    first = min(problems)
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    fix = "; ".join(part for part in (first.fix, "`assay check` lists every problem") if part)
    return Trouble(f"{first.message}{more}", where=first.where, fix=fix)
