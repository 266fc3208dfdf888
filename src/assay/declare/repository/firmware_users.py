"""The nodes of each firmware bundle, put together where playbooks treat them alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from assay.declare.repository.firmware_tasks import PLAYBOOKS, FirmwareTask
from assay.declare.repository.play_hosts import SEPARATOR, is_selected
from assay.declare.repository.repository_draft import RepositoryDraft
from assay.model.specs.firmware_bundle import FirmwareBundle, FirmwareComponent
from assay.model.specs.management_profile import ManagementProfile
from assay.model.specs.node.node_spec import NodeSpec
from assay.model.text.text_lists import format_count

ZAP_PLAYBOOK = f"{PLAYBOOKS}/zap.yml"


@dataclass(frozen=True, slots=True)
class BundleUsers:
    """Nodes with one bundle and the same groups. `has_adapters`: assay manages the adapters' firmware."""

    bundle: FirmwareBundle
    has_adapters: bool
    groups: frozenset[str]
    nodes: tuple[str, ...]

    def manages(self, component: FirmwareComponent) -> bool:
        """Say whether assay updates a component of the bundle on these nodes."""
        return self.has_adapters or not component.hca

    def get_from(self, tasks: Iterable[FirmwareTask], component: str) -> bool:
        """Say whether a task brings the component to these nodes, or may do so."""
        return any(
            (task.brings_all or component in task.components)
            and is_selected(task.hosts, self.nodes[0], self.groups) is not False
            for task in tasks
        )

    def is_surely_selected(self, task: FirmwareTask) -> bool:
        """Say whether a task runs on these nodes, whatever its conditions."""
        return task.is_certain and is_selected(task.hosts, self.nodes[0], self.groups) is True

    def describe(self) -> str:
        """Return the first node, and how many are like it."""
        more = len(self.nodes) - 1
        return f"{self.nodes[0]} and {format_count(more, 'node')} like it" if more else self.nodes[0]


def list_bundle_users(draft: RepositoryDraft, tasks: Sequence[FirmwareTask]) -> list[BundleUsers]:
    """Return the nodes whose spec and bundle could be read. A node that a task selects by name stands alone."""
    bundles, specs = draft.specs_of_model(FirmwareBundle), draft.specs_of_model(NodeSpec)
    profiles = draft.specs_of_model(ManagementProfile)
    by_groups = _name_only_groups(draft, tasks)
    found: dict[tuple[str, str, tuple[str, ...], str], list[str]] = {}
    for host in draft.hosts:
        if host.settings is not None:
            groups = tuple(draft.inventory.hosts[host.name].groups)
            alone = "" if by_groups else host.name
            found.setdefault((host.settings.node_spec, host.settings.profile, groups, alone), []).append(host.name)
    users = []
    for (spec, profile, groups, _), nodes in found.items():
        bundle = bundles.get(specs[spec].firmware) if spec in specs else None
        if bundle is not None and profile in profiles:
            above = frozenset(draft.inventory.find_ancestors(groups))
            users.append(BundleUsers(bundle, profiles[profile].hca_firmware, above, tuple(nodes)))
    return users


def _name_only_groups(draft: RepositoryDraft, tasks: Sequence[FirmwareTask]) -> bool:
    """Say whether the tasks select nodes by whole groups alone."""
    terms = {term.strip().lstrip("!&") for task in tasks for term in SEPARATOR.split(task.hosts)}
    return terms <= {"", "*", *draft.inventory.groups}
