"""Reads a fleet repository into a Fleet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from assay.fleet.document import Shelf
from assay.fleet.draft import Draft, HostEntry
from assay.fleet.git import commit_of, revision
from assay.fleet.lines import Lines
from assay.fleet.problem import Problem
from assay.fleet.tree import Revision
from assay.fleet.variables import NodeVariables
from assay.model.errors import Trouble
from assay.model.fleet import Fleet, Node


def load_fleet(root: Path, overlays: Sequence[Path] = (), rev: str | None = None, shelf: Shelf | None = None) -> Fleet:
    """Read the repository at `root`; `overlays` are inventory sources that go over its own.

    `rev` is a revision of git, read without a checkout; None the folder as it is, dirty or not. Raises Trouble with
    the first mistake where a file cannot be read or does not fit its model. Mistakes of meaning (a dangling name, a
    serial number given twice) are for `assay.fleet.check` to find. Fleets that share a shelf share what is the same.
    """
    return fleet_of(draft_of(root, overlays, rev, shelf))


def draft_of(root: Path, overlays: Sequence[Path] = (), rev: str | None = None, shelf: Shelf | None = None) -> Draft:
    """Read what `load_fleet` reads, mistakes and all. Two revisions that share a shelf share what is the same."""
    root = root.absolute()
    return Draft(root, overlays, "" if rev is None else commit_of(root, rev), shelf)


def fleet_of(draft: Draft) -> Fleet:
    """Return the fleet that was read. Raises Trouble with the first mistake."""
    if draft.problems:
        raise _trouble(draft.problems)
    commit, dirty = (draft.tree.commit, False) if isinstance(draft.tree, Revision) else revision(draft.root)
    return Fleet(
        root=draft.root,
        nodes={host.name: node_of(host, host.read) for host in draft.hosts if host.read},
        node_specs=draft.called("NodeSpec"),
        bundles=draft.called("FirmwareBundle"),
        designs=draft.called("FabricDesign"),
        faults=draft.called("FaultCatalog"),
        policies=draft.called("LifecyclePolicy"),
        profiles=draft.called("ManagementProfile"),
        checks=draft.called("CheckCatalog"),
        routes=draft.called("TicketRoute"),
        quirks=draft.called("BmcQuirks"),
        monitorings=draft.called("Monitoring"),
        known=draft.called("KnownIssues"),
        gates=draft.called("Gates"),
        checklists=draft.called("Checklists"),
        schedules=draft.called("Schedules"),
        lines=Lines(draft.files),
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
