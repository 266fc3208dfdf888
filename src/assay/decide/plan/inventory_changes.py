"""Finds the nodes that are added, removed, renamed or changed. The serial number says which machine a node is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from assay.declare.problems import SECRET_NAME
from assay.declare.secret_detection import find_secret_shape
from assay.model.facts import frozen
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.node_settings import NodeSettings

COMPARED_FIELDS = {"spec": "node_spec", "pool": "pool", "profile": "profile", "serial": "serial_number"}
PLACE_FIELDS = ("site", "rack", "u")
ADDRESSES = ("bmc_address", "bmc_mac", "mac")
COMPARED_SETTINGS = sorted(NodeSettings.model_fields.keys() - {"lifecycle_start", "service_import"})

Change = tuple[str, str, str]
"""What changed, the old value, the new value, for people."""


@frozen
class NodeChange:
    """One changed field of some nodes. Secrets and lists are named, but their values are not shown."""

    what: str
    """The field."""
    old: str
    """Its value before; a secret or a list is not shown."""
    new: str
    """Its value after; a secret or a list is not shown."""
    nodes: tuple[str, ...]
    """The nodes in which it changes."""


@frozen
class InventoryChanges:
    """The difference of two inventories. `kept` holds every node of both, in its old and its new form.

    `renamed` are those of `kept` whose machine has another name.
    """

    added: tuple[Node, ...]
    removed: tuple[Node, ...]
    changed: tuple[NodeChange, ...]
    kept: tuple[tuple[Node, Node], ...]
    renamed: tuple[tuple[Node, Node], ...] = ()


def compare_inventories(before: Fleet, after: Fleet) -> InventoryChanges:
    """Compare two inventories, node by node."""
    renamed = tuple(_find_renamed(before, after))
    gone, come = {old.name for old, _ in renamed}, {new.name for _, new in renamed}
    same_name = ((old, after.nodes[name]) for name, old in before.nodes.items() if name in after.nodes)
    kept = (*(pair for pair in same_name if pair[0].name not in gone and pair[1].name not in come), *renamed)
    groups: dict[Change, list[str]] = defaultdict(list)
    settings_changes: dict[tuple[int, int], list[Change]] = {}
    for old, new in kept:
        if old is not new:
            for change in _differences(old, new, settings_changes):
                groups[change].append(new.name)
    there, here = {old.name for old, _ in kept}, {new.name for _, new in kept}
    return InventoryChanges(
        added=tuple(node for name, node in after.nodes.items() if name not in here),
        removed=tuple(node for name, node in before.nodes.items() if name not in there),
        changed=tuple(NodeChange(*change, tuple(names)) for change, names in groups.items()),
        kept=kept,
        renamed=renamed,
    )


def _find_renamed(before: Fleet, after: Fleet) -> Iterator[tuple[Node, Node]]:
    """Yield the machines that have another name after the change, in their old and their new form."""
    machines = {node.serial: node for node in before.nodes.values() if node.serial}
    for new in after.nodes.values():
        old = machines.get(new.serial)
        if old and old.name != new.name:
            yield old, new


def _differences(old: Node, new: Node, settings_changes: dict[tuple[int, int], list[Change]]) -> Iterator[Change]:
    """Yield the differences. `settings_changes` caches those of settings, because many nodes share one pair of them."""
    for field, label in COMPARED_FIELDS.items():
        was, will = getattr(old, field), getattr(new, field)
        if was != will:
            yield label, was, will
    if (old.site, old.rack, old.u) != (new.site, new.rack, new.u):
        yield "place", _place(old), _place(new)
    if old.hca_guids != new.hca_guids:
        gone = [guid for guid in old.hca_guids if guid not in new.hca_guids]
        come = [guid for guid in new.hca_guids if guid not in old.hca_guids]
        if gone or come:
            yield "hca_guids", ", ".join(gone), ", ".join(come)
        else:
            yield "hca_guids", "in another order", "in this order"
    pair = (id(old.settings), id(new.settings))
    if pair not in settings_changes:
        settings_changes[pair] = list(_settings_differences(old.settings, new.settings))
    addresses = ((name, getattr(old, name), getattr(new, name)) for name in ADDRESSES)
    changes = [(name, *_format_change(name, was or None, will or None)) for name, was, will in addresses if was != will]
    yield from sorted([*changes, *settings_changes[pair]]) if changes else settings_changes[pair]


def _settings_differences(old: NodeSettings, new: NodeSettings) -> Iterator[Change]:
    if old is new:
        return
    for name in COMPARED_SETTINGS:
        was, will = _given_value(old, name), _given_value(new, name)
        if was != will:
            yield name, *_format_change(name, was, will)
    others = (old.other_variables, new.other_variables)
    for name in sorted(others[0].keys() | others[1].keys()):
        was, will = (variables.get(name) for variables in others)
        if was != will:
            yield name, *_format_change(name, was, will)


def _given_value(settings: NodeSettings, name: str) -> Any:
    return getattr(settings, name) if name in settings.model_fields_set else None


def _place(node: Node) -> str:
    return f"{node.site} {node.rack} U{node.u}"


def _format_change(name: str, old: Any, new: Any) -> tuple[str, str]:
    plain = not SECRET_NAME.search(name) and all(_is_plain(value) for value in (old, new))
    return (_format_value(old), _format_value(new)) if plain else (_mask_value(old), _mask_value(new))


def _is_plain(value: Any) -> bool:
    """Whether a value may be shown: a text, a number, or a command without a word that may be a secret."""
    if isinstance(value, list):
        return all(isinstance(word, str) and not SECRET_NAME.search(word) and _is_plain(word) for word in value)
    if isinstance(value, str):
        return not find_secret_shape(value)
    return value is None or isinstance(value, int | float)


def _format_value(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(value) or "nothing"
    return "not given" if value is None else str(value)


def _mask_value(value: Any) -> str:
    return "not given" if value is None else "given otherwise"
