"""The hosts of a fleet repository as its inventory declares them, and the problems found on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from assay.declare.group_variables import (
    AnsibleInventory,
    InventoryHost,
    VariableLayer,
    find_deciding_layer,
    merge_variables,
)
from assay.declare.inventory_reader import InventorySource, open_disk_source, read_inventory
from assay.declare.problems import FleetProblem, explain_violations
from assay.declare.repository.tree import ADD_INVENTORY, NO_INVENTORY, RepositoryTree
from assay.declare.yaml import ParseCache
from assay.model.node import Node
from assay.model.specs.node_settings import (
    IDENTITY_VARIABLES,
    NodeSettings,
    NodeVariables,
    make_node_settings,
    make_node_variables,
)

_NO_ANSWER = ["sh", "-c", "echo 'the lab does not have this node: assay lab up makes it' >&2; exit 1"]
CUT_OFF: dict[str, Any] = {
    "bmc_port": 443,
    "bmc_credentials": None,
    "bmc_ca": "",
    "bmc_fingerprint": "",
    "bmc_system": "",
    "bmc_console": None,
    "workloads": "lab",
    "slurm_conf": "",
    "kubernetes": None,
    "reach": _NO_ANSWER,
    "probe_command": [],
    "fabric_discover": _NO_ANSWER,
    "fabric_facts": {},
    "metrics": None,
    "load": None,
    "load_tools": None,
}
"""What a lab's source leaves out of a node's settings, so that no value of the real node is left: see `_cut_off`."""


@dataclass(frozen=True)
class HostDeclaration:
    """One host of the inventory: its merged variables, as written and as typed values, and its pools.

    `settings` is None if a variable does not fit. `shared_settings` is the part that the Node gets: hosts of the same
    groups with equal variables share one object. `layers` are the sources of the variables, weakest first.
    """

    name: str
    variables: Mapping[str, Any]
    settings: NodeVariables | None
    shared_settings: NodeSettings | None
    pools: Sequence[str]
    layers: Sequence[VariableLayer]
    own: VariableLayer

    @property
    def pool(self) -> str:
        """The node's pool: the variable `pool`, else the first group that lists the host."""
        return (self.settings.pool if self.settings else "") or (self.pools[0] if self.pools else "ungrouped")

    def find_position(self, variable: str = "", *path: Any) -> tuple[str, int, int]:
        """Return file, line and column of a variable, of the entry at `path` in it, or of the host itself."""
        layer = find_deciding_layer(self.layers, variable)
        if layer is None:
            return (self.own.document.file, *self.own.document.place(self.own.path))
        return (layer.document.file, *layer.document.place((*layer.path, variable, *path)))

    def decides_itself(self, variable: str) -> bool:
        """Whether a variable comes from the host itself, or is not given, rather than from one of its groups."""
        layer = find_deciding_layer(self.layers, variable)
        return layer is None or layer.path == self.own.path


class InventoryDraft:
    """Everything that could be read of the inventory of a tree.

    `overlays` are the sources of a lab, which override its own, None for the real fleet. What reaches a machine comes
    from a lab's sources or from nowhere, value by value: nothing in the lab reaches a real machine.
    """

    def __init__(
        self, root: Path, tree: RepositoryTree, overlays: Sequence[Path] | None = None, cache: ParseCache | None = None
    ) -> None:
        self.inventory, self.problems = self._read_inventory(root, tree, overlays, cache)
        self.all_hosts_read = not self.problems
        self._settings: dict[tuple[str, ...], NodeSettings] = {}
        self._models: dict[tuple[str, int], BaseModel] = {}
        self.hosts = self._read_hosts(cache)
        lab = [open_disk_source(path, root) for path in overlays or ()]
        names = {source.display_prefix + path for source in lab for path in source.files()}
        self._lab_files = None if overlays is None else names

    @property
    def nodes(self) -> list[Node]:
        """The node of every host that could be read, with no image yet."""
        nodes = []
        known: dict[tuple[int, frozenset[str]], NodeSettings] = {}
        for host in self.hosts:
            if host.settings and (shared := host.shared_settings):
                node = build_node(host, host.settings, shared)
                nodes.append(node if self._lab_files is None else self._cut_off(host, node, known))
        return nodes

    def _cut_off(
        self, host: HostDeclaration, node: Node, known: dict[tuple[int, frozenset[str]], NodeSettings]
    ) -> Node:
        """Return a node of a lab without anything of the real one that its sources do not say. `known` shares settings.

        A BMC that they do not have gets a name that never resolves (RFC 6761).
        """
        declared = frozenset(
            name for layer in host.layers if layer.document.file in (self._lab_files or ()) for name in layer.variables
        )
        key = (id(node.settings), declared)
        if key not in known:
            own = "bmc_own_certificate" in declared  # of a virtual machine that the inventory itself must trust
            missing = {name: value for name, value in CUT_OFF.items() if name not in declared}
            missing = {name: value for name, value in missing.items() if not own or name != "bmc_fingerprint"}
            known[key] = node.settings.model_copy(update=missing)
        address = node.bmc_address if "bmc_address" in declared or not node.bmc_address else f"{node.name}.lab.invalid"
        return replace(node, bmc_address=address, settings=known[key])

    @staticmethod
    def _read_inventory(
        root: Path, tree: RepositoryTree, overlays: Sequence[Path] | None, cache: ParseCache | None
    ) -> tuple[AnsibleInventory, list[FleetProblem]]:
        if not tree.files("inventory"):
            return AnsibleInventory(), [_missing_inventory_problem(NO_INVENTORY)]
        sources = [
            InventorySource(tree, "inventory", "inventory"),
            *(open_disk_source(path, root) for path in overlays or ()),
        ]
        inventory, problems = read_inventory(sources, cache)
        if not inventory.hosts and not problems:
            problems.append(_missing_inventory_problem("inventory/ names no node"))
        return inventory, problems

    def _read_hosts(self, cache: ParseCache | None) -> list[HostDeclaration]:
        """Return the hosts, from the cache if it holds those of the same inventory."""
        if cache is None:
            return [self._read_host(name) for name in self.inventory.hosts]
        documents = {id(layer.document.marks): layer.document for layer in self.inventory.list_all_layers()}
        key = tuple((document.file, marks) for marks, document in documents.items())
        if key in cache.hosts:
            return cache.hosts[key]
        hosts = [self._read_host(name) for name in self.inventory.hosts]
        if not self.problems:
            cache.hosts[key] = hosts
        return hosts

    def _read_host(self, name: str) -> HostDeclaration:
        host = self.inventory.hosts[name]
        layers = self.inventory.layers(host)
        variables = merge_variables(layers)
        pools = [group for group in host.groups if group not in ("all", "ungrouped")]
        try:
            shared = self._share_settings(host, variables)
            settings = make_node_variables(variables, shared)
            return HostDeclaration(name, variables, settings, shared, pools, layers, host.inline[0])
        except ValidationError as error:
            entry = HostDeclaration(name, variables, None, None, pools, layers, host.inline[0])
            self.problems += self._list_problems(entry, _collect_violations(variables, error))
            return entry

    def _share_settings(self, host: InventoryHost, variables: Mapping[str, Any]) -> NodeSettings:
        """Return the settings among a host's variables: one object for hosts that differ only in their identity.

        What a group declares once, such as the import of all nodes of a pool, becomes one model of all settings.
        """
        own = [
            item
            for layer in (*host.inline, *host.files)
            for item in layer.variables.items()
            if item[0] not in IDENTITY_VARIABLES
        ]
        key = (*host.groups, repr(own))
        if key not in self._settings:
            known = {name: self._models.get((name, id(value)), value) for name, value in variables.items()}
            settings = self._settings[key] = make_node_settings(known)
            models = ((name, model) for name, model in vars(settings).items() if isinstance(model, BaseModel))
            self._models |= {(name, id(variables[name])): model for name, model in models if name in variables}
        return self._settings[key]

    @staticmethod
    def _list_problems(entry: HostDeclaration, error: ValidationError) -> list[FleetProblem]:
        problems = []
        for path, violation, fix, code in explain_violations(error, NodeVariables):
            variable = str(path[0]) if path else ""
            message = f"{entry.name}: {violation}" if entry.decides_itself(variable) else violation
            default_code = "ASY0013" if violation == "node_spec is missing" else "ASY0012"
            place = entry.find_position(variable, *path[1:])
            problems.append(FleetProblem(*place, code or default_code, "error", message, fix))
        return problems


def _collect_violations(variables: Mapping[str, Any], first: ValidationError) -> ValidationError:
    """Return the violations of all variables of a host. `first`: those that were found with a part of them."""
    try:
        NodeVariables.model_validate(variables)
    except ValidationError as error:
        return error
    return first


def _missing_inventory_problem(message: str) -> FleetProblem:
    return FleetProblem("inventory", 0, 0, "ASY0011", "error", message, ADD_INVENTORY)


def build_node(host: HostDeclaration, variables: NodeVariables, settings: NodeSettings) -> Node:
    """Return the node of a host, with its identity from `variables`. The specs say which image it boots."""
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
        settings=settings,
    )
