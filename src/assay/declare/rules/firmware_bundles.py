"""Firmware bundles with missing or wrong images, an order that cannot work, or components that no playbook brings."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from assay.declare.check import RuleFinding, rule
from assay.declare.repository.draft import RepositoryDraft
from assay.declare.repository.playbooks import ZAP_PLAYBOOK, find_yaml_error, read_firmware_tasks, read_zap_tasks
from assay.declare.rules.dangling_names import suggest_name
from assay.declare.yaml import YAML_FIX
from assay.model.specs.firmware_bundle import FirmwareBundle, FirmwareComponent
from assay.model.specs.management_profile import ManagementProfile
from assay.model.specs.node.node_spec import NodeSpec

LFS_POINTER_BYTES = 1024  # bytes: a git-lfs pointer file is smaller, as its specification says
LFS_POINTER = re.compile(
    rb"\Aversion https://git-lfs\.github\.com/spec/v1\n(?:[a-z0-9.-]+ [^\n]*\n)*?"
    rb"oid sha256:([0-9a-f]{64})\nsize \d+\n\Z"
)


@rule("ASY0040", "a firmware artifact that does not exist")
def missing_artifact(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Zap finds out only after it has drained the node."""
    for bundle, number, component, path in _local_artifacts(draft):
        if not resolve_artifact(draft.root, path).is_file():
            message = f"{component.name}: there is no file {path} in the repository"
            place = _at(draft, bundle, number, "artifact", "url")
            yield RuleFinding(place, message, "add the image, correct the path, or give its HTTPS URL")


@rule("ASY0041", "a firmware artifact with a different digest")
def wrong_digest(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """This is not the image that somebody qualified."""
    for bundle, number, component, path in _local_artifacts(draft):
        file = resolve_artifact(draft.root, path)
        artifact = component.artifact
        if artifact and file.is_file() and (digest := hash_artifact(file)) != artifact.sha256:
            place = _at(draft, bundle, number, "artifact", "sha256")
            message = f"{component.name}: {path} has the sha256 {digest}"
            yield RuleFinding(place, message, "add the qualified image, or qualify this one")


@rule("ASY0042", "one inventory id in two components")
def shared_inventory_id(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Each flash overwrites the other, and neither version reads back."""
    owners: dict[tuple[str, str], str] = {}
    for bundle, number, component in _components(draft):
        for id_ in component.inventory:
            owner = owners.setdefault((bundle.name, id_), component.name)
            if owner != component.name:
                message = f"{component.name}: {id_} already belongs to {owner}"
                yield RuleFinding(_at(draft, bundle, number, "inventory"), message, "keep it in one of the two")


@rule("ASY0043", "one order, two resets")
def mixed_resets(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Components with the same order share one reset, and here that reset is unclear."""
    first: dict[tuple[str, int], FirmwareComponent] = {}
    for bundle, number, component in _components(draft):
        other = first.setdefault((bundle.name, component.order), component)
        if other.reset != component.reset:
            resets = f"{component.name} resets {component.reset}, {other.name} {other.reset}"
            message = f"{resets}, both in order {other.order}"
            yield RuleFinding(_at(draft, bundle, number, "reset"), message, "give one of them an order of its own")


@rule("ASY0044", "a component given twice")
def shared_component(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """A component cannot have two versions."""
    seen: set[tuple[str, str]] = set()
    for bundle, number, component in _components(draft):
        if (bundle.name, component.name) in seen:
            message = f"{bundle.name} already has a component {component.name}"
            yield RuleFinding(_at(draft, bundle, number, "name"), message, "keep one of the two")
        seen.add((bundle.name, component.name))


@rule("ASY0045", "components that wait for each other")
def circular_order(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """None of these components can be the first."""
    for bundle in draft.specs_of_model(FirmwareBundle).values():
        if circle := _circle(bundle):
            number = [component.name for component in bundle.components].index(circle[0])
            message = f"{' after '.join(circle)}: the order is circular"
            yield RuleFinding(_at(draft, bundle, number, "after"), message, "remove one of them from `after`")


@rule("ASY0046", "a component after one that does not exist")
def after_unknown_component(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The component waits for one that never comes onto the node."""
    for bundle, number, component in _components(draft):
        names = [other.name for other in bundle.components]
        for name in component.after:
            if name not in names:
                message = f"{component.name} comes after {name}, which {bundle.name} does not have"
                yield RuleFinding(_at(draft, bundle, number, "after"), message, suggest_name(name, names))


@rule("ASY0047", "an order that contradicts `after`")
def contradicted_order(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Zap follows the order, so it installs this component too early."""
    for bundle, number, component in _components(draft):
        first = [
            other for other in bundle.components if other.name in component.after and other.order >= component.order
        ]
        if first and not _circle(bundle):
            message = f"{component.name} comes after {first[0].name}, but has the order {component.order}"
            fix = f"give {component.name} an order above {first[0].order}"
            yield RuleFinding(_at(draft, bundle, number, "order"), message, fix)


@rule("ASY0270", "a component that no task of zap brings", needs=(FirmwareBundle, NodeSpec, ManagementProfile))
def unbrought_component(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Zap leaves its old firmware in place, and fails when it compares the node with the bundle."""
    if ZAP_PLAYBOOK not in draft.tree.files("playbooks"):
        return
    if error := find_yaml_error(draft.tree, ZAP_PLAYBOOK):
        yield RuleFinding(error[0], f"nobody knows what this playbook brings: it is no YAML: {error[1]}", YAML_FIX)
        return
    tasks = read_zap_tasks(draft.tree)
    if tasks is None or not all(task.components for task in tasks):
        return
    brought = {name for task in tasks for name in task.components}
    for bundle, has_adapters in _list_used_bundles(draft):
        for number, component in enumerate(bundle.components):
            if component.name not in brought and (has_adapters or not component.hca):
                message = f"{component.name}: no task of {ZAP_PLAYBOOK} brings it"
                fix = f"leave `components` out of a task there: it then brings the bundle; or list {component.name}"
                yield RuleFinding(_at(draft, bundle, number, "name"), message, fix)


def _list_used_bundles(draft: RepositoryDraft) -> list[tuple[FirmwareBundle, bool]]:
    """Return the bundles of the inventory's nodes, and whether assay manages the adapters' firmware on one of them."""
    bundles = draft.specs_of_model(FirmwareBundle)
    specs = draft.specs_of_model(NodeSpec)
    profiles = draft.specs_of_model(ManagementProfile)
    used: dict[str, bool] = {}
    for host in draft.hosts:
        if host.settings and host.settings.node_spec in specs and host.settings.profile in profiles:
            name = specs[host.settings.node_spec].firmware
            used[name] = used.get(name, False) or profiles[host.settings.profile].hca_firmware
    return [(bundles[name], has_adapters) for name, has_adapters in used.items() if name in bundles]


@rule("ASY0271", "a playbook that names a component that no bundle has", needs=(FirmwareBundle,))
def unknown_playbook_component(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The task fails on each node, after the tasks before it have flashed the node."""
    known = {part.name for bundle in draft.specs_of_model(FirmwareBundle).values() for part in bundle.components}
    for task in read_firmware_tasks(draft.tree):
        for name, place in task.components.items():
            if name not in known:
                yield RuleFinding(place, f"no bundle has a component {name}", suggest_name(name, known))


def hash_artifact(path: Path) -> str:
    """Return the SHA-256 of an artifact. Without Git LFS, the checkout holds a pointer file with the SHA-256."""
    with path.open("rb") as stream:
        pointer = LFS_POINTER.match(stream.read(LFS_POINTER_BYTES + 1))
        stream.seek(0)
        return pointer[1].decode() if pointer else hashlib.file_digest(stream, "sha256").hexdigest()


def is_pointer(path: Path) -> bool:
    """Whether a file is only Git LFS's pointer to another."""
    with path.open("rb") as stream:
        return LFS_POINTER.match(stream.read(LFS_POINTER_BYTES + 1)) is not None


def resolve_artifact(root: Path, path: str) -> Path:
    """Return `path` below the repository; for a path that leads out of it, a path that does not exist."""
    target = (root / path).resolve()
    return target if target.is_relative_to(root.resolve()) else root / "leads outside the repository"


def _components(draft: RepositoryDraft) -> Iterator[tuple[FirmwareBundle, int, FirmwareComponent]]:
    for bundle in draft.specs_of_model(FirmwareBundle).values():
        for number, component in enumerate(bundle.components):
            yield bundle, number, component


def _local_artifacts(draft: RepositoryDraft) -> Iterator[tuple[FirmwareBundle, int, FirmwareComponent, str]]:
    """Yield the components whose image is a file of the repository, with its path."""
    for bundle, number, component in _components(draft):
        if component.artifact and (path := component.artifact.path):
            yield bundle, number, component, path


def _at(draft: RepositoryDraft, bundle: FirmwareBundle, number: int, *entry: str) -> tuple[str, int, int]:
    return draft.find_position(f"FirmwareBundle/{bundle.name}", "components", number, *entry)


def _circle(bundle: FirmwareBundle) -> list[str]:
    """Return the names of a circle of components, the first one again at the end; an empty list without a circle."""
    try:
        TopologicalSorter({component.name: component.after for component in bundle.components}).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []
