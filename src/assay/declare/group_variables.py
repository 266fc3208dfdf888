"""Groups and hosts of an inventory. Variables merge as in Ansible with its default settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any

from assay.declare.yaml import YamlDocument
from assay.model.facts import frozen

GROUP_PRIORITY_VARIABLE = "ansible_group_priority"


@frozen
class VariableLayer:
    """Variables from one place: the mapping at `path` of `document`."""

    variables: Mapping[str, Any]
    document: YamlDocument
    path: tuple[Any, ...] = ()


@dataclass(slots=True)
class InventoryGroup:
    """A group: its inline variables, its files in `group_vars/`, and its parent groups."""

    name: str
    inline: list[VariableLayer] = field(default_factory=list)
    files: list[VariableLayer] = field(default_factory=list)
    parents: list[str] = field(default_factory=list)
    priority: int = 1


@dataclass(slots=True)
class InventoryHost:
    """A host: its inline variables, its files in `host_vars/`, and the groups that list it directly."""

    name: str
    inline: list[VariableLayer] = field(default_factory=list)
    files: list[VariableLayer] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)


@dataclass(slots=True)
class AnsibleInventory:
    """Every group and host, in the order of the sources. The group `all` always exists."""

    groups: dict[str, InventoryGroup] = field(default_factory=lambda: {"all": InventoryGroup("all")})
    hosts: dict[str, InventoryHost] = field(default_factory=dict)
    depths: dict[str, int] = field(default_factory=lambda: {"all": 0})
    _inherited: dict[tuple[str, ...], list[VariableLayer]] = field(default_factory=dict)

    def group(self, name: str) -> InventoryGroup:
        """Return the group of that name; create it if it is new."""
        return self.groups.setdefault(name, InventoryGroup(name))

    def host(self, name: str) -> InventoryHost:
        """Return the host of that name; create it if it is new."""
        return self.hosts.setdefault(name, InventoryHost(name))

    def layers(self, host: InventoryHost) -> list[VariableLayer]:
        """Return the layers of a host's variables, weakest first.

        Ansible's order: `all` inline, groups inline, `group_vars/all`, other `group_vars`, host inline, `host_vars`.
        Among groups, the deeper one wins, then the higher `ansible_group_priority`, then the later name.
        """
        key = tuple(host.groups)
        if key not in self._inherited:
            self._inherited[key] = list(self._group_layers(key))
        return [*self._inherited[key], *host.inline, *host.files]

    def list_all_layers(self) -> Iterator[VariableLayer]:
        """Yield every layer of every group and host."""
        owners: list[InventoryGroup | InventoryHost] = [*self.groups.values(), *self.hosts.values()]
        for owner in owners:
            yield from owner.inline
            yield from owner.files

    def _group_layers(self, direct: Iterable[str]) -> Iterator[VariableLayer]:
        root = self.groups["all"]
        groups = [group for group in self.sort_groups(self.find_ancestors(direct)) if group is not root]
        yield from root.inline
        for group in groups:
            yield from group.inline
        yield from root.files
        for group in groups:
            yield from group.files

    def find_ancestors(self, direct: Iterable[str]) -> set[str]:
        """Return groups and all their ancestors. Circular parents are followed once."""
        ancestors: set[str] = set()
        waiting = list(direct)
        while waiting:
            name = waiting.pop()
            if name not in ancestors:
                ancestors.add(name)
                waiting += self.groups[name].parents
        return ancestors

    def sort_groups(self, names: Iterable[str]) -> list[InventoryGroup]:
        """Return groups in ascending precedence: later ones win."""
        return sorted((self.groups[name] for name in names), key=lambda g: (self.depths[g.name], g.priority, g.name))

    def resolve_parents(self) -> list[list[str]]:
        """Put groups without a parent below `all`, and compute each group's depth: its longest path from `all`.

        Returns the circles of groups that contain themselves. One link of each circle is removed.
        """
        for group in self.groups.values():
            if group.name != "all" and not group.parents:
                group.parents.append("all")
        circles = []
        while circle := self._compute_depths():
            circles.append(circle)
            self.groups[circle[1]].parents.remove(circle[0])
        return circles

    def _compute_depths(self) -> list[str]:
        """Compute all depths. If groups contain themselves, return a circle: each group, then one that it contains."""
        try:
            order = TopologicalSorter({name: group.parents for name, group in self.groups.items()}).static_order()
            for name in order:
                self.depths[name] = max((self.depths[parent] + 1 for parent in self.groups[name].parents), default=0)
        except CycleError as error:
            return list(error.args[1])
        return []


def merge_variables(layers: Iterable[VariableLayer]) -> dict[str, Any]:
    """Return the variables of all layers; later layers override earlier ones."""
    variables: dict[str, Any] = {}
    for layer in layers:
        variables.update(layer.variables)
    variables.pop(GROUP_PRIORITY_VARIABLE, None)
    return variables


def find_deciding_layer(layers: Sequence[VariableLayer], variable: str) -> VariableLayer | None:
    """Return the last layer with a variable, which decides its value; None if no layer has it."""
    return next((layer for layer in reversed(layers) if variable in layer.variables), None)
