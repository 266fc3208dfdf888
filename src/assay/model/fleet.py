"""The fleet as its repository declares it: nodes from `inventory/`, everything else from `specs/`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from assay.model.errors import AssayError
from assay.model.node import Node, list_capacities
from assay.model.outcome import CheckSubject

if TYPE_CHECKING:  # each model is loaded when a document of its kind is read
    from assay.model.specs.bmc_quirks import BmcQuirks
    from assay.model.specs.burn_in import BurnIn
    from assay.model.specs.check_catalog import CheckCatalog, Gates
    from assay.model.specs.fabric.adapters import AdapterNames
    from assay.model.specs.fabric.fabric_design import FabricDesign
    from assay.model.specs.fault_catalog import FaultCatalog
    from assay.model.specs.fault_relations import FaultRelations
    from assay.model.specs.firmware_bundle import FirmwareBundle
    from assay.model.specs.golden_digests import DigestRuns, GoldenDigests, GoldenKey
    from assay.model.specs.image import Image
    from assay.model.specs.known_issues import KnownIssue, KnownIssues
    from assay.model.specs.lifecycle_policy import LifecyclePolicy
    from assay.model.specs.load_parts import GoldenKind
    from assay.model.specs.machines import ExpectedMachines
    from assay.model.specs.management_profile import ManagementProfile
    from assay.model.specs.monitoring import Monitoring
    from assay.model.specs.node.node_spec import NodeSpec
    from assay.model.specs.node_settings import PoolCapacity
    from assay.model.specs.provisioning import Provisioning
    from assay.model.specs.schedules import Schedules
    from assay.model.specs.technician_work import Checklists
    from assay.model.specs.ticket_route import TicketRoute
    from assay.model.specs.trend_rules import TrendRules
    from assay.model.specs.trust_rules import Trust, TrustSetting
    from assay.model.specs.workload import CollectiveWorkload

FIELD_OF_KIND = {
    "NodeSpec": "node_specs",
    "FirmwareBundle": "bundles",
    "FabricDesign": "designs",
    "FaultCatalog": "fault_catalogs",
    "LifecyclePolicy": "policies",
    "ManagementProfile": "profiles",
    "CheckCatalog": "check_catalogs",
    "TicketRoute": "ticket_routes",
    "BmcQuirks": "quirks",
    "Monitoring": "monitorings",
    "KnownIssues": "known_issue_lists",
    "Gates": "gates",
    "Checklists": "checklists",
    "Schedules": "schedules",
    "BurnIn": "burn_ins",
    "CollectiveWorkload": "collective_workloads",
    "GoldenDigests": "golden_digests",
    "ExpectedMachines": "deliveries",
    "Image": "images",
    "Provisioning": "provisionings",
    "TrendRules": "trend_rules",
    "AdapterNames": "adapter_names",
}
"""Where a Fleet has the specs of each kind."""


@dataclass(frozen=True)
class Fleet:
    """Everything that the repository declares, each kind of spec by name.

    `lines` gives the file and line of a value: `lines["NodeSpec/hgx-h100", "limits.gpu_temperature"]` is
    `"specs/nodes/hgx-h100.yaml:41"`; the path `""` is the document itself. `dirty`: the files differ from `commit`.
    `is_lab`: the nodes are virtual, and addresses lead to the lab.
    """

    root: Path
    nodes: Mapping[str, Node]
    node_specs: Mapping[str, NodeSpec] = field(default_factory=dict)
    bundles: Mapping[str, FirmwareBundle] = field(default_factory=dict)
    designs: Mapping[str, FabricDesign] = field(default_factory=dict)
    fault_catalogs: Mapping[str, FaultCatalog] = field(default_factory=dict)
    policies: Mapping[str, LifecyclePolicy] = field(default_factory=dict)
    profiles: Mapping[str, ManagementProfile] = field(default_factory=dict)
    check_catalogs: Mapping[str, CheckCatalog] = field(default_factory=dict)
    ticket_routes: Mapping[str, TicketRoute] = field(default_factory=dict)
    quirks: Mapping[str, BmcQuirks] = field(default_factory=dict)
    monitorings: Mapping[str, Monitoring] = field(default_factory=dict)
    known_issue_lists: Mapping[str, KnownIssues] = field(default_factory=dict)
    gates: Mapping[str, Gates] = field(default_factory=dict)
    checklists: Mapping[str, Checklists] = field(default_factory=dict)
    schedules: Mapping[str, Schedules] = field(default_factory=dict)
    burn_ins: Mapping[str, BurnIn] = field(default_factory=dict)
    collective_workloads: Mapping[str, CollectiveWorkload] = field(default_factory=dict)
    golden_digests: Mapping[str, GoldenDigests] = field(default_factory=dict)
    deliveries: Mapping[str, ExpectedMachines] = field(default_factory=dict)
    images: Mapping[str, Image] = field(default_factory=dict)
    provisionings: Mapping[str, Provisioning] = field(default_factory=dict)
    trend_rules: Mapping[str, TrendRules] = field(default_factory=dict)
    adapter_names: Mapping[str, AdapterNames] = field(default_factory=dict)
    lines: Mapping[tuple[str, str], str] = field(default_factory=dict)
    commit: str = ""
    dirty: bool = False
    is_lab: bool = False

    def find_page(self, *path: str) -> str:
        """Return the address of a page of `assay serve`, "" where the policy names none, and in the lab."""
        base = "" if self.is_lab else next((policy.pages for policy in self.policies.values() if policy.pages), "")
        return "/".join([base, *(quote(part, safe="") for part in path)]) if base else ""

    @property
    def repair_proofs(self) -> Mapping[str, tuple[str, ...]]:
        """What proves a repair: parts of a load, and checks. Raises AssayError if two catalogues define a fault."""
        return self.fault_catalog.proofs if self.fault_catalogs else {}

    @property
    def fault_relations(self) -> FaultRelations:
        """Which fault follows from which. Raises AssayError if two catalogues define a fault."""
        from assay.model.specs.fault_relations import UNRELATED

        return self.fault_catalog.fault_relations if self.fault_catalogs else UNRELATED

    @cached_property
    def fault_catalog(self) -> FaultCatalog:
        """All fault catalogues merged. Raises AssayError if there is none, or if two define the same fault."""
        from assay.model.specs.fault_catalog import merge_catalogs

        where = str(self.root / "specs" / "faults")
        if not self.fault_catalogs:
            raise AssayError("the fleet has no fault catalogue", where=where, fix="`assay init` makes one to copy")
        try:
            return merge_catalogs(self.fault_catalogs.values())
        except ValueError as error:
            raise AssayError(str(error), where=where, fix="`assay check` says where") from None

    @property
    def sound_fault_catalog(self) -> FaultCatalog | None:
        """All fault catalogues merged, None if there is none, or if they contradict each other."""
        try:
            return self.fault_catalog
        except AssayError:
            return None

    @property
    def policy(self) -> LifecyclePolicy:
        """The lifecycle policy. Raises AssayError unless the fleet has exactly one."""
        if len(self.policies) != 1:
            raise AssayError(
                f"the fleet has {len(self.policies)} lifecycle policies",
                where=str(self.root / "specs" / "lifecycle"),
                fix="keep one of them" if self.policies else "`assay init` makes one to copy",
            )
        return next(iter(self.policies.values()))

    @cached_property
    def policy_of_state(self) -> Mapping[str, LifecyclePolicy]:
        """The policy that has each state."""
        return {name: policy for policy in self.policies.values() for name in policy.states}

    @cached_property
    def states_in_service(self) -> frozenset[str]:
        """The states in which customers use nodes."""
        serving = (name for name, policy in self.policy_of_state.items() if policy.is_in_service(name))
        return frozenset(serving)

    @cached_property
    def trust(self) -> Trust:
        """How far automation may go. Without exactly one policy, nothing says that it may do anything."""
        from assay.model.specs.trust_rules import Trust, TrustRules

        if len(self.policies) != 1:
            return Trust(TrustRules(), self.is_lab)
        return Trust(self.policy.trust, self.is_lab, self.policy.name, self.lines)

    def find_trust(self, node: str = "", actions: Collection[str] = ()) -> TrustSetting:
        """Return how far automation may go with actions on a node; without actions with the node, or with the fleet."""
        return self.trust.find(self.nodes[node].pool if node in self.nodes else "", actions)

    def is_watched(self, node: str, *actions: str) -> bool:
        """Whether assay only watches a node, and so must not do this to it. See `find_trust`."""
        return self.find_trust(node, actions).step == "watch"

    @cached_property
    def known_issues(self) -> tuple[KnownIssue, ...]:
        """Every known issue of every list, including expired ones."""
        return tuple(issue for issues in self.known_issue_lists.values() for issue in issues.issues)

    @cached_property
    def observed_checks(self) -> frozenset[str]:
        """The ids of the checks at stage `observe`."""
        return frozenset(
            check.id for catalog in self.check_catalogs.values() for check in catalog.checks if check.is_observe_only
        )

    @property
    def phases(self) -> list[str]:
        """The default phases, and those that only this fleet's checks have."""
        from assay.model.specs.check_catalog import DEFAULT_PHASES

        checks = (check for catalog in self.check_catalogs.values() for check in catalog.checks)
        declared = {phase for check in checks for phase in check.phases}
        return [*DEFAULT_PHASES, *sorted(declared - set(DEFAULT_PHASES))]

    def spec_of(self, node: str) -> NodeSpec:
        """Return the NodeSpec of a node; of one without a BMC, without what only a BMC reads or brings."""
        declared = self.nodes[node]
        return (self.node_specs if declared.bmc_address else self._specs_without_bmc)[declared.spec]

    @cached_property
    def _specs_without_bmc(self) -> Mapping[str, NodeSpec]:
        return {name: spec.without_bmc() for name, spec in self.node_specs.items()}

    @cached_property
    def nodes_by_parts(self) -> Mapping[frozenset[str], list[str]]:
        """The names of the nodes by what they have."""
        by_parts: dict[frozenset[str], list[str]] = {}
        for name in self.nodes:
            by_parts.setdefault(self.parts_of(name), []).append(name)
        return by_parts

    @property
    def gpu_counts(self) -> dict[str, int]:
        """How many GPUs each node has by its spec."""
        return {name: self.node_specs[node.spec].gpus.count for name, node in self.nodes.items()}

    def parts_of(self, node: str) -> frozenset[str]:
        """Return what a node has: parts of its spec, and what the inventory gives it, such as a BMC or a fabric."""
        declared = self.nodes[node]
        settings = declared.settings
        key = (declared.spec, bool(declared.bmc_address), bool(settings.fabric), settings.site_tools)
        if key not in self._parts:
            self._parts[key] = self.spec_of(node).list_parts(*key[1:])
        return self._parts[key]

    @cached_property
    def _parts(self) -> dict[tuple[str, bool, bool, frozenset[str]], frozenset[str]]:
        return {}

    def bundle_of(self, node: str) -> FirmwareBundle:
        """Return the firmware bundle that a node must carry; one without components if its spec names none."""
        from assay.model.specs.firmware_bundle import NO_FIRMWARE

        name = self.spec_of(node).firmware
        return self.bundles[name] if name else NO_FIRMWARE

    def profile_of(self, node: str) -> ManagementProfile:
        """Return what automation may do to a node."""
        return self.profiles[self.nodes[node].profile]

    def provisioning_of(self, node: str) -> Provisioning | None:
        """Return how a node boots, None if assay does not boot it."""
        pool = self.nodes[node].pool
        return next(
            (provisioning for provisioning in self.provisionings.values() if provisioning.applies_to(pool)), None
        )

    @cached_property
    def boot_macs(self) -> Mapping[str, str]:
        """The node by each MAC address from which a machine may boot."""
        return {mac: node.name for node in self.nodes.values() for mac in node.boot_macs}

    def image_of(self, node: str) -> Image | None:
        """Return the image that a node should boot, None if none is declared for it."""
        return self.images.get(self.nodes[node].image.partition(":")[0])

    def list_golden(self, spec: str) -> list[GoldenDigests]:
        """Return the golden digests for the GPUs of a NodeSpec. Those that stand in vouch for nodes of the lab only."""
        model = self.node_specs[spec].gpus.model
        known = (golden for golden in self.golden_digests.values() if self.is_lab or not golden.stands_in)
        return [golden for golden in known if golden.computed_by.gpu == model]

    def list_golden_values(self, spec: str, kind: GoldenKind) -> list[tuple[GoldenKey, dict[str, DigestRuns]]]:
        """Return what of the golden digests of a kind decides about a verdict."""
        return [(golden.computed_by, golden.digests) for golden in self.list_golden(spec) if golden.of_kind == kind]

    @cached_property
    def capacities(self) -> Mapping[str, PoolCapacity]:
        """What each pool delivers, by pool; of those that declare it."""
        return list_capacities(self.nodes.values())

    def nodes_in_pool(self, name: str) -> list[Node]:
        """Return the nodes of a pool, in inventory order."""
        return [node for node in self.nodes.values() if node.pool == name]


def allure_labels(
    fleet: Fleet, node: str, subject: str, phases: Iterable[str], fault: str
) -> Iterator[tuple[str, str]]:
    """Yield the labels of a subject in Allure: pool, rack, node, every phase, fault class, and commit of the specs."""
    declared = fleet.nodes.get(node)
    parsed = CheckSubject.parse(subject)
    yield "pool", declared.pool if declared else parsed.scope
    yield "rack", declared.rack if declared else parsed.name.removeprefix("rack-")
    yield "node", node or parsed.name
    for phase in phases:
        yield "phase", phase
    if fault:
        yield "fault", fault
    yield "spec", f"{fleet.commit[:12] or 'no commit'}{'+changes' if fleet.dirty else ''}"
