"""A fleet repository as far as it can be read: the input of `assay check`, and what a Fleet is built from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from assay.fleet.ansible_inventory.group_variables import (
    AnsibleInventory,
    InventoryHost,
    VariableLayer,
    find_deciding_layer,
    merge_variables,
)
from assay.fleet.ansible_inventory.inventory_reader import InventorySource, open_disk_source, read_inventory
from assay.fleet.repository_tree import ADD_INVENTORY, NO_INVENTORY, CommitTree, RepositoryTree, WorkingFolder
from assay.fleet.spec_reader import SpecFile, read_specs
from assay.fleet.suite_source import SuiteSource, parse_suites
from assay.fleet.validation_problems import FleetProblem, explain_violations
from assay.fleet.yaml_document import ParseCache
from assay.model.specs.node_settings import (
    IDENTITY_VARIABLES,
    NodeSettings,
    NodeVariables,
    make_node_settings,
    make_node_variables,
)
from assay.model.specs.spec_document import SpecDocument

if TYPE_CHECKING:
    from assay.model.specs.check_catalog_and_gates import CheckCatalog, CheckDeclaration

S = TypeVar("S", bound=SpecDocument)


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


class RepositoryDraft:
    """Everything that could be read of the repository at `root`, and the problems found on the way.

    `commit`: read this commit instead of the working folder. `overlays`: inventory sources that override its own.
    `now`: the time with which expiry dates are compared.
    """

    def __init__(
        self,
        root: Path,
        overlays: Sequence[Path] = (),
        commit: str = "",
        cache: ParseCache | None = None,
        now: datetime | None = None,
    ) -> None:
        self.root, self.now = root, now or datetime.now(UTC)
        self.tree: RepositoryTree = CommitTree(root, commit) if commit else WorkingFolder(root)
        self.specs, self.refused = read_specs(self.tree, cache)
        self.problems = [problem for refused in self.refused for problem in refused.problems]
        self.inventory, inventory_problems = self._read_inventory(overlays, cache)
        self.problems += inventory_problems
        self.all_hosts_read = not inventory_problems
        self._settings: dict[tuple[str, ...], NodeSettings] = {}
        self.hosts = self._read_hosts(cache)
        self.problems = list(dict.fromkeys(self.problems))

    def _read_inventory(
        self, overlays: Sequence[Path], cache: ParseCache | None
    ) -> tuple[AnsibleInventory, list[FleetProblem]]:
        if not self.tree.files("inventory"):
            return AnsibleInventory(), [_missing_inventory_problem(NO_INVENTORY)]
        sources = [
            InventorySource(self.tree, "inventory", "inventory"),
            *(open_disk_source(path, self.root) for path in overlays),
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
        """Return the settings among a host's variables: one object for hosts that differ only in their identity."""
        own = [
            item
            for layer in (*host.inline, *host.files)
            for item in layer.variables.items()
            if item[0] not in IDENTITY_VARIABLES
        ]
        key = (*host.groups, repr(own))
        if key not in self._settings:
            self._settings[key] = make_node_settings(variables)
        return self._settings[key]

    @staticmethod
    def _list_problems(entry: HostDeclaration, error: ValidationError) -> list[FleetProblem]:
        problems = []
        for path, what, fix, code in explain_violations(error, NodeVariables):
            variable = str(path[0]) if path else ""
            message = f"{entry.name}: {what}" if entry.decides_itself(variable) else what
            default_code = "ASY0013" if what == "node_spec is missing" else "ASY0012"
            place = entry.find_position(variable, *path[1:])
            problems.append(FleetProblem(*place, code or default_code, "error", message, fix))
        return problems

    def find_position(self, key: str, *path: Any) -> tuple[str, int, int]:
        """Return file, line and column of the entry at `path` in the spec `Kind/name`."""
        return self.spec_files[key].find_position(path)

    def specs_of_model(self, kind: type[S]) -> dict[str, S]:
        """Return the specs of one kind by name. Of two specs with the same name, the first counts."""
        found: dict[str, S] = {}
        for entry in self.specs:
            if isinstance(entry.spec, kind):
                found.setdefault(entry.spec.name, entry.spec)
        return found

    def specs_of_kind(self, kind: str) -> dict[str, Any]:
        """Return the specs of one kind by name, without loading a model that no document needs."""
        found: dict[str, Any] = {}
        for entry in self.specs:
            if entry.spec.kind == kind:
                found.setdefault(entry.spec.name, entry.spec)
        return found

    def list_names(self, kind: type[SpecDocument]) -> set[str]:
        """Return the names of one kind, including refused specs: those exist, and their problems are listed already."""
        refused = {spec.name for spec in self.refused if spec.kind == kind.__name__}
        return {*self.specs_of_model(kind), *refused}

    def is_complete(self, *kinds: type[SpecDocument]) -> bool:
        """Whether every spec of these kinds could be read, so that a name that is not found is really missing."""
        lost = {spec.kind for spec in self.refused}
        return "" not in lost and lost.isdisjoint(kind.__name__ for kind in kinds)

    @cached_property
    def suites(self) -> SuiteSource:
        """The checks, limits and measurements of the suites."""
        return parse_suites(self.tree)

    @cached_property
    def declared_checks(self) -> list[tuple[tuple[str, int, int], CheckDeclaration]]:
        """Position and declaration of every check of every catalogue."""
        catalogs: dict[str, CheckCatalog] = self.specs_of_kind("CheckCatalog")
        return [
            (self.find_position(f"CheckCatalog/{catalog.name}", "checks", number), check)
            for catalog in catalogs.values()
            for number, check in enumerate(catalog.checks)
        ]

    @cached_property
    def spec_files(self) -> dict[str, SpecFile]:
        """The spec files by `Kind/name`. Of two specs with the same name, the first counts."""
        found: dict[str, SpecFile] = {}
        for entry in self.specs:
            found.setdefault(entry.key, entry)
        return found


def _collect_violations(variables: Mapping[str, Any], first: ValidationError) -> ValidationError:
    """Return the violations of all variables of a host. `first`: those that were found with a part of them."""
    try:
        NodeVariables.model_validate(variables)
    except ValidationError as error:
        return error
    return first


def _missing_inventory_problem(message: str) -> FleetProblem:
    return FleetProblem("inventory", 0, 0, "ASY0011", "error", message, ADD_INVENTORY)
