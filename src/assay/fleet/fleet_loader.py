"""Reads a fleet repository into a Fleet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from assay.fleet.git import read_revision, resolve_commit
from assay.fleet.repository_draft import HostDeclaration, RepositoryDraft
from assay.fleet.repository_tree import CommitTree
from assay.fleet.spec_reader import SpecLineIndex
from assay.fleet.validation_problems import FleetProblem
from assay.fleet.yaml_document import ParseCache
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.node_settings import NodeSettings, NodeVariables

if TYPE_CHECKING:  # loaded where a fleet declares one
    from assay.model.provisioning.provisioning_spec import Provisioning


def load_fleet(
    root: Path, overlays: Sequence[Path] = (), rev: str | None = None, cache: ParseCache | None = None
) -> Fleet:
    """Read the fleet repository at `root`. `overlays` are inventory sources that override its own.

    `rev` is a git revision, read without a checkout; None reads the folder as it is. Fleets that share a cache share
    equal parts. Raises AssayError with the first file that cannot be read or does not fit its model. Contradictions
    between files (a dangling name, a serial number given twice) are found by `assay.fleet.repository_check`.
    """
    return build_fleet(read_draft(root, overlays, rev, cache))


def read_draft(
    root: Path, overlays: Sequence[Path] = (), rev: str | None = None, cache: ParseCache | None = None
) -> RepositoryDraft:
    """Read what `load_fleet` reads, and collect the problems instead of raising the first one."""
    root = root.absolute()
    return RepositoryDraft(root, overlays, "" if rev is None else resolve_commit(root, rev), cache)


def build_fleet(draft: RepositoryDraft) -> Fleet:
    """Return the fleet of a draft. Raises AssayError with the first problem."""
    if draft.problems:
        raise _first_problem_error(draft.problems)
    return build_readable_fleet(draft)


def build_readable_fleet(draft: RepositoryDraft) -> Fleet:
    """Return the fleet as far as it can be read: specs and hosts with a problem are left out."""
    commit, dirty = (draft.tree.commit, False) if isinstance(draft.tree, CommitTree) else read_revision(draft.root)
    provisionings, images = draft.specs_of_kind("Provisioning"), draft.specs_of_kind("Image")
    labels = {name: image.label for name, image in images.items()}
    image_of = partial(_find_image, list(provisionings.values()), labels)
    return Fleet(
        root=draft.root,
        nodes={
            host.name: build_node(host, host.settings, host.shared_settings, image_of(host.settings, host.pool))
            for host in draft.hosts
            if host.settings and host.shared_settings
        },
        node_specs=draft.specs_of_kind("NodeSpec"),
        bundles=draft.specs_of_kind("FirmwareBundle"),
        designs=draft.specs_of_kind("FabricDesign"),
        fault_catalogs=draft.specs_of_kind("FaultCatalog"),
        policies=draft.specs_of_kind("LifecyclePolicy"),
        profiles=draft.specs_of_kind("ManagementProfile"),
        check_catalogs=draft.specs_of_kind("CheckCatalog"),
        ticket_routes=draft.specs_of_kind("TicketRoute"),
        quirks=draft.specs_of_kind("BmcQuirks"),
        monitorings=draft.specs_of_kind("Monitoring"),
        known_issue_lists=draft.specs_of_kind("KnownIssues"),
        gates=draft.specs_of_kind("Gates"),
        checklists=draft.specs_of_kind("Checklists"),
        schedules=draft.specs_of_kind("Schedules"),
        cost_assumptions=draft.specs_of_kind("CostAssumptions"),
        burn_ins=draft.specs_of_kind("BurnIn"),
        collective_workloads=draft.specs_of_kind("CollectiveWorkload"),
        golden_digests=draft.specs_of_kind("GoldenDigests"),
        deliveries=draft.specs_of_kind("ExpectedMachines"),
        images=images,
        provisionings=provisionings,
        trend_rules=draft.specs_of_kind("TrendRules"),
        adapter_names=draft.specs_of_kind("AdapterNames"),
        lines=SpecLineIndex(draft.spec_files),
        commit=commit,
        dirty=dirty,
    )


def build_node(host: HostDeclaration, variables: NodeVariables, settings: NodeSettings, image: str) -> Node:
    """Return the node of an inventory host, with its identity from `variables`. `image`: the label of its Image."""
    return Node(
        name=host.name,
        pool=host.pool,
        site=variables.site,
        rack=variables.rack,
        u=variables.u,
        serial=variables.serial_number,
        spec=variables.node_spec,
        profile=variables.profile,
        hca_guids=tuple(variables.hca_guids),
        bmc_address=variables.bmc_address,
        mac=variables.mac or "",
        bmc_mac=variables.bmc_mac or "",
        image=image,
        settings=settings,
    )


def _first_problem_error(problems: Sequence[FleetProblem]) -> AssayError:
    first = min(problems)
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    fix = "; ".join(part for part in (first.fix, "`assay check` lists every problem") if part)
    return AssayError(f"{first.message}{more}", where=first.where, fix=fix)


def _find_image(boots: Sequence[Provisioning], labels: Mapping[str, str], variables: NodeVariables, pool: str) -> str:
    """Return the label of the image that a host boots: its own `boot_image`, else the one of its pool; "" for none."""
    if not labels:
        return ""
    images = next((one.images for one in boots if one.applies_to(pool)), {})
    return labels.get(variables.boot_image or images.get(variables.node_spec, ""), "")
