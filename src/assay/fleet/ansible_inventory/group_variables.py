"""Groups and hosts of an inventory, and how their variables merge: as Ansible does, with its default settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any

from assay.fleet.yaml_document import YamlDocument

GROUP_PRIORITY_VARIABLE = "ansible_group_priority"


@dataclass(frozen=True, slots=True)
class VariableLayer:
    """Variables from one place: the mapping at `path` of `document`."""

    variables: Mapping[str, Any]
    document: YamlDocument
    path: tuple[Any, ...] = ()


@dataclass(slots=True)
class InventoryGroup:
    """A group: what it says inline, what its files in `group_vars/` say, its parents."""

    name: str
    inline: list[VariableLayer] = field(default_factory=list)
    files: list[VariableLayer] = field(default_factory=list)
    parents: list[str] = field(default_factory=list)
    priority: int = 1


@dataclass(slots=True)
class InventoryHost:
    """A host: its variables (inline, then `host_vars/`), and the groups that list it directly."""

    name: str
    inline: list[VariableLayer] = field(default_factory=list)
    files: list[VariableLayer] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)


@dataclass(slots=True)
class AnsibleInventory:
    """Every group and host, in the order in which the sources name them. Group `all` is always there."""

    groups: dict[str, InventoryGroup] = field(default_factory=lambda: {"all": InventoryGroup("all")})
    hosts: dict[str, InventoryHost] = field(default_factory=dict)
    depths: dict[str, int] = field(default_factory=lambda: {"all": 0})
    _inherited: dict[tuple[str, ...], list[VariableLayer]] = field(default_factory=dict)

    def group(self, name: str) -> InventoryGroup:
        """Return a group, made where it is new."""
        return self.groups.setdefault(name, InventoryGroup(name))

    def host(self, name: str) -> InventoryHost:
        """Return a host, made where it is new."""
        return self.hosts.setdefault(name, InventoryHost(name))

    def layers(self, host: InventoryHost) -> list[VariableLayer]:
        """Return the layers of a host's variables, weakest first.

        Ansible's order: `all` inline, groups inline, `group_vars/all`, other `group_vars`, host inline, `host_vars`;
        among groups, the deeper, then the higher `ansible_group_priority`, then the later name wins.
        """
        key = tuple(host.groups)
        if key not in self._inherited:
            self._inherited[key] = list(self._of_groups(key))
        return [*self._inherited[key], *host.inline, *host.files]

    def list_all_layers(self) -> Iterator[VariableLayer]:
        """Yield every layer of every group and host."""
        owners: list[InventoryGroup | InventoryHost] = [*self.groups.values(), *self.hosts.values()]
        for owner in owners:
            yield from owner.inline
            yield from owner.files

    def _of_groups(self, direct: Iterable[str]) -> Iterator[VariableLayer]:
        every = self.groups["all"]
        groups = [group for group in self.sort_groups(self.find_ancestors(direct)) if group is not every]
        yield from every.inline
        for group in groups:
            yield from group.inline
        yield from every.files
        for group in groups:
            yield from group.files

    def find_ancestors(self, direct: Iterable[str]) -> set[str]:
        """Return groups and all their ancestors. Circles end where they began."""
        found: set[str] = set()
        waiting = list(direct)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += self.groups[name].parents
        return found

    def sort_groups(self, names: Iterable[str]) -> list[InventoryGroup]:
        """Return groups in the order in which later ones win."""
        return sorted((self.groups[name] for name in names), key=lambda g: (self.depths[g.name], g.priority, g.name))

    def resolve_parents(self) -> list[list[str]]:
        """Hang groups without a parent below `all` and measure how deep each lies: the longest way from `all`.

        Returns the circles of groups that contain themselves, each cut open at one place.
        """
        for group in self.groups.values():
            if group.name != "all" and not group.parents:
                group.parents.append("all")
        circles = []
        while circle := self._circle():
            circles.append(circle)
            self.groups[circle[1]].parents.remove(circle[0])
        return circles

    def _circle(self) -> list[str]:
        """Measure the depths, or return a circle, each group followed by one that it contains."""
        try:
            order = TopologicalSorter({name: group.parents for name, group in self.groups.items()}).static_order()
            for name in order:
                self.depths[name] = max((self.depths[up] + 1 for up in self.groups[name].parents), default=0)
        except CycleError as found:
            return list(found.args[1])
        return []


def merge_variables(layers: Iterable[VariableLayer]) -> dict[str, Any]:
    """Return one mapping of variables: a later layer replaces what an earlier one said."""
    variables: dict[str, Any] = {}
    for layer in layers:
        variables.update(layer.variables)
    variables.pop(GROUP_PRIORITY_VARIABLE, None)
    return variables


def find_deciding_layer(layers: Sequence[VariableLayer], variable: str) -> VariableLayer | None:
    """Return the layer that decides a variable."""
    return next((layer for layer in reversed(layers) if variable in layer.variables), None)
