"""One revision of the fleet repository, as a plan looks at it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from assay.fleet.reads import Reads
from assay.model.checks import Check
from assay.model.errors import Trouble
from assay.model.faults import FaultCatalog, in_force
from assay.model.fleet import Fleet
from assay.model.policy import LifecyclePolicy
from assay.model.spec import Spec

S = TypeVar("S", bound=Spec)


@dataclass(frozen=True)
class Declared:
    """A fleet and what its suites read. `name` is what a person calls the revision, `main` or `the working tree`."""

    fleet: Fleet
    reads: Mapping[str, Reads] = field(default_factory=dict)
    name: str = ""

    @cached_property
    def policy(self) -> LifecyclePolicy:
        """The lifecycle policy. Raises Trouble unless there is exactly one."""
        return _only(self, self.fleet.policies, "lifecycle policy", "specs/lifecycle")

    @cached_property
    def catalog(self) -> FaultCatalog:
        """The fault catalogues together. Raises Trouble where there is none."""
        return self.fleet.catalog

    @cached_property
    def checks(self) -> dict[str, Check]:
        """Every declared check by its id."""
        return {check.id: check for catalogue in self.fleet.checks.values() for check in catalogue.checks}

    def policy_line(self, path: str) -> str:
        """Return `file:line` of a part of the policy, or of the nearest thing around it."""
        return line_of(self.fleet, f"LifecyclePolicy/{self.policy.name}", path)

    def catalog_line(self, path: str) -> str:
        """Return `file:line` of a part of the fault catalogues: of whichever of them says it."""
        documents = [f"FaultCatalog/{catalog.name}" for catalog in in_force(self.fleet.faults.values())]
        said = max(documents, key=lambda document: len(_said(self.fleet, document, path)))
        return line_of(self.fleet, said, path)


def must_be_whole(declared: Declared) -> None:
    """Raise Trouble where a node names a spec, a profile or a bundle that the revision does not have."""
    fleet = declared.fleet
    for node in {(node.spec, node.profile): node for node in fleet.nodes.values()}.values():
        spec = fleet.node_specs.get(node.spec)
        _must_have(declared, node.name, "NodeSpec", node.spec, spec is not None)
        _must_have(declared, node.name, "ManagementProfile", node.profile, node.profile in fleet.profiles)
        if spec:
            _must_have(declared, spec.name, "FirmwareBundle", spec.firmware, spec.firmware in fleet.bundles)


def _must_have(declared: Declared, who: str, kind: str, name: str, there: bool) -> None:
    if not there:
        fix = "`assay check` on that revision says where; a plan needs two revisions without mistakes"
        raise Trouble(f"{declared.name}: {who} names the {kind} {name}, which does not exist", fix=fix)


def line_of(fleet: Fleet, document: str, path: str) -> str:
    """Return `file:line` of a value of a spec, or of the nearest thing around it, or the document's name."""
    return fleet.lines.get((document, _said(fleet, document, path)), document)


def _said(fleet: Fleet, document: str, path: str) -> str:
    """Return the path, or the nearest above it, that a document says."""
    while path and (document, path) not in fleet.lines:
        path = path.rpartition(".")[0]
    return path


def _only(declared: Declared, found: Mapping[str, S], what: str, folder: str) -> S:
    if len(found) != 1:
        raise Trouble(f"a fleet has one {what}, {declared.name or 'this revision'} has {len(found)}", where=folder)
    return next(iter(found.values()))
