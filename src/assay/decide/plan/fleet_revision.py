"""One revision of the fleet repository, as a plan uses it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from assay.declare.declared_hosts import HostDeclaration
from assay.declare.spec_values_read_by_checks import CheckInputs
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.specs.check_catalog_and_gates import CheckDeclaration
from assay.model.specs.fault_catalog import FaultCatalog, select_active_catalogs
from assay.model.specs.lifecycle_policy import LifecyclePolicy


@dataclass(frozen=True)
class FleetRevision:
    """A fleet and what its suites read. `name` is the revision's name for people: `main`, or `the working tree`.

    `files`: the other files that assay acts by (see acting_files). `hosts`: where the inventory declares each node.
    `unread`: `file:line` and reason of each part that cannot be read and was taken from the other revision.
    """

    fleet: Fleet
    reads: Mapping[str, CheckInputs] = field(default_factory=dict)
    name: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)
    hosts: Mapping[str, HostDeclaration] = field(default_factory=dict)
    unread: tuple[tuple[str, str], ...] = ()

    @cached_property
    def policy(self) -> LifecyclePolicy:
        """The lifecycle policy. Raises AssayError unless there is exactly one."""
        try:
            return self.fleet.policy
        except AssayError as error:
            raise AssayError(f"{self.name or 'this revision'}: {error.what}", where="specs/lifecycle") from None

    @cached_property
    def catalog(self) -> FaultCatalog:
        """The fault catalogues together. Raises AssayError if there is none."""
        return self.fleet.fault_catalog

    @cached_property
    def checks(self) -> dict[str, CheckDeclaration]:
        """Every declared check by its id."""
        return {check.id: check for catalogue in self.fleet.check_catalogs.values() for check in catalogue.checks}

    def policy_line(self, path: str) -> str:
        """Return `file:line` of a part of the policy, or of its nearest parent."""
        return find_spec_line(self.fleet, f"LifecyclePolicy/{self.policy.name}", path)

    def catalog_line(self, path: str) -> str:
        """Return `file:line` of a part of the fault catalogues, in the catalogue that has it."""
        documents = [
            f"FaultCatalog/{catalog.name}" for catalog in select_active_catalogs(self.fleet.fault_catalogs.values())
        ]
        said = max(documents, key=lambda document: len(_nearest_path(self.fleet, document, path)))
        return find_spec_line(self.fleet, said, path)


def check_references(declared: FleetRevision) -> None:
    """Raise AssayError if a node names a spec, a profile or a bundle that the revision does not have."""
    fleet = declared.fleet
    for node in {(node.spec, node.profile): node for node in fleet.nodes.values()}.values():
        spec = fleet.node_specs.get(node.spec)
        _check_reference(declared, node.name, "NodeSpec", node.spec, spec is not None)
        _check_reference(declared, node.name, "ManagementProfile", node.profile, node.profile in fleet.profiles)
        if spec:
            _check_reference(declared, spec.name, "FirmwareBundle", spec.firmware, spec.firmware in fleet.bundles)


def _check_reference(declared: FleetRevision, who: str, kind: str, name: str, there: bool) -> None:
    if not there:
        fix = "`assay check` on that revision says where; a plan needs two revisions without mistakes"
        raise AssayError(f"{declared.name}: {who} names the {kind} {name}, which does not exist", fix=fix)


def find_spec_line(fleet: Fleet, document: str, path: str) -> str:
    """Return `file:line` of a value of a spec; if it has none, of the nearest parent, or the document's name."""
    return fleet.lines.get((document, _nearest_path(fleet, document, path)), document)


def _nearest_path(fleet: Fleet, document: str, path: str) -> str:
    """Return the path, or the nearest parent of it that a document has."""
    while path and (document, path) not in fleet.lines:
        path = path.rpartition(".")[0]
    return path
