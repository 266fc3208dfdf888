"""A fleet repository as far as it can be read: what `check` looks at, and what a Fleet is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from assay.fleet.document import Shelf
from assay.fleet.groups import Inventory, Layer, merged, origin
from assay.fleet.inventory import Source, on_disk, read_inventory
from assay.fleet.problem import Problem
from assay.fleet.specs import SpecFile, read_specs
from assay.fleet.suites import Suites, read_suites
from assay.fleet.tree import Folder, Revision, Tree
from assay.fleet.variables import NodeVariables
from assay.fleet.violations import violations
from assay.model.spec import Spec

if TYPE_CHECKING:
    from assay.model.checks import Check, CheckCatalog

S = TypeVar("S", bound=Spec)


@dataclass(frozen=True)
class HostEntry:
    """One host: its merged variables, what assay reads of them (None where they are wrong), its pools."""

    name: str
    variables: Mapping[str, Any]
    read: NodeVariables | None
    pools: Sequence[str]
    layers: Sequence[Layer]
    own: Layer

    @property
    def pool(self) -> str:
        """The node's pool: the variable `pool`, else the one group that lists it."""
        return (self.read.pool if self.read else "") or (self.pools[0] if self.pools else "ungrouped")

    def place(self, variable: str = "") -> tuple[str, int, int]:
        """Return file, line and column of a variable, or of the host itself."""
        layer = origin(self.layers, variable)
        if layer is None:
            return (self.own.document.file, *self.own.document.place(self.own.path))
        return (layer.document.file, *layer.document.place((*layer.path, variable)))

    def says(self, variable: str) -> bool:
        """Whether the host itself, and not one of its groups, decides a variable, or nobody does."""
        layer = origin(self.layers, variable)
        return layer is None or layer.path == self.own.path


class Draft:
    """Everything that could be read of the repository at `root`, and the problems met on the way.

    `commit` reads that commit instead of the folder as it is; `overlays` are inventory sources over its own. What has
    a day on which it ends is held against `now`.
    """

    def __init__(
        self,
        root: Path,
        overlays: Sequence[Path] = (),
        commit: str = "",
        shelf: Shelf | None = None,
        now: datetime | None = None,
    ) -> None:
        self.root, self.now = root, now or datetime.now(UTC)
        self.tree: Tree = Revision(root, commit) if commit else Folder(root)
        self.specs, self.refused = read_specs(self.tree, shelf)
        self.problems = [problem for refused in self.refused for problem in refused.problems]
        self.inventory, wrong = self._inventory(overlays, shelf)
        self.problems += wrong
        self.all_hosts_read = not wrong
        self.hosts = self._hosts(shelf)
        self.problems = list(dict.fromkeys(self.problems))

    def _inventory(self, overlays: Sequence[Path], shelf: Shelf | None) -> tuple[Inventory, list[Problem]]:
        if not self.tree.files("inventory"):
            return Inventory(), [_no_nodes("there is no inventory/: this is no fleet repository")]
        sources = [Source(self.tree, "inventory", "inventory"), *(on_disk(path, self.root) for path in overlays)]
        inventory, problems = read_inventory(sources, shelf)
        if not inventory.hosts and not problems:
            problems.append(_no_nodes("inventory/ names no node"))
        return inventory, problems

    def _hosts(self, shelf: Shelf | None) -> list[HostEntry]:
        """Return the hosts, shared with an earlier draft whose inventory was the same."""
        if shelf is None:
            return [self._host(name) for name in self.inventory.hosts]
        said = {id(layer.document.marks): layer.document for layer in self.inventory.every_layer()}
        key = tuple((document.file, marks) for marks, document in said.items())
        if key in shelf.hosts:
            return shelf.hosts[key]
        hosts = [self._host(name) for name in self.inventory.hosts]
        if not self.problems:
            shelf.hosts[key] = hosts
        return hosts

    def _host(self, name: str) -> HostEntry:
        host = self.inventory.hosts[name]
        layers = self.inventory.layers(host)
        variables = merged(layers)
        pools = [group for group in host.groups if group not in ("all", "ungrouped")]
        try:
            read = NodeVariables.model_validate(variables)
            return HostEntry(name, variables, read, pools, layers, host.inline[0])
        except ValidationError as error:
            entry = HostEntry(name, variables, None, pools, layers, host.inline[0])
            self.problems += self._refused(entry, error)
            return entry

    @staticmethod
    def _refused(entry: HostEntry, error: ValidationError) -> list[Problem]:
        problems = []
        for path, what, fix, code in violations(error, NodeVariables):
            variable = str(path[0]) if path else ""
            said = f"{entry.name}: {what}" if entry.says(variable) else what
            problems.append(Problem(*entry.place(variable), code or _code(what), "error", said, fix))
        return problems

    def at(self, key: str, *path: Any) -> tuple[str, int, int]:
        """Return file, line and column of an entry of the spec `Kind/name`."""
        return self.files[key].place(path)

    def of(self, kind: type[S]) -> dict[str, S]:
        """Return the specs of one kind by name; of two with one name, the first."""
        found: dict[str, S] = {}
        for entry in self.specs:
            if isinstance(entry.spec, kind):
                found.setdefault(entry.spec.name, entry.spec)
        return found

    def called(self, kind: str) -> dict[str, Any]:
        """Return the specs of one kind by name, as `of` does, without loading a model that no document needs."""
        found: dict[str, Any] = {}
        for entry in self.specs:
            if entry.spec.kind == kind:
                found.setdefault(entry.spec.name, entry.spec)
        return found

    def names(self, kind: type[Spec]) -> set[str]:
        """Return the names of one kind, also of specs that were refused: they exist, and are told of already."""
        refused = {one.name for one in self.refused if one.kind == kind.__name__}
        return {*self.of(kind), *refused}

    def whole(self, *kinds: type[Spec]) -> bool:
        """Whether every spec of these kinds could be read, so that what is missing among them is really missing."""
        lost = {one.kind for one in self.refused}
        return "" not in lost and lost.isdisjoint(kind.__name__ for kind in kinds)

    @cached_property
    def suites(self) -> Suites:
        """What the suites say about themselves."""
        return read_suites(self.tree)

    @cached_property
    def checks(self) -> list[tuple[tuple[str, int, int], Check]]:
        """Every check of every catalogue, and where it is declared."""
        catalogs: dict[str, CheckCatalog] = self.called("CheckCatalog")
        return [
            (self.at(f"CheckCatalog/{catalog.name}", "checks", number), check)
            for catalog in catalogs.values()
            for number, check in enumerate(catalog.checks)
        ]

    @cached_property
    def files(self) -> dict[str, SpecFile]:
        """The spec files by `Kind/name`; of two with one name, the first."""
        found: dict[str, SpecFile] = {}
        for entry in self.specs:
            found.setdefault(entry.key, entry)
        return found


def _no_nodes(said: str) -> Problem:
    return Problem("inventory", 0, 0, "ASY0011", "error", said, "list the nodes below inventory/, or use `--fleet DIR`")


def _code(what: str) -> str:
    return "ASY0013" if what == "node_spec is missing" else "ASY0012"
