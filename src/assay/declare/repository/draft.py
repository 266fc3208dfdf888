"""A fleet repository as far as it can be read: the input of `assay check`, and what a Fleet is built from."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from assay.declare.declared_hosts import HostDeclaration, InventoryDraft
from assay.declare.repository.tree import CommitTree, RepositoryTree, WorkingFolder
from assay.declare.spec_reader import SpecFile, index_spec_files, read_specs
from assay.declare.suite_source import SuiteSource, parse_suites
from assay.declare.yaml import ParseCache
from assay.model.node import Node
from assay.model.specs.load_parts import TOOLS_OF_SITE
from assay.model.specs.spec_document import SpecDocument

if TYPE_CHECKING:
    from assay.model.specs.check_catalog import CheckCatalog, CheckDeclaration
    from assay.model.specs.node.node_spec import NodeSpec

S = TypeVar("S", bound=SpecDocument)


class RepositoryDraft:
    """Everything that could be read of the repository at `root`, and the problems found on the way.

    `commit`: read this commit instead of the working folder. `overlays`: inventory sources that override its own.
    `now`: the time with which expiry dates are compared.
    """

    def __init__(
        self,
        root: Path,
        overlays: Sequence[Path] | None = None,
        commit: str = "",
        cache: ParseCache | None = None,
        now: datetime | None = None,
    ) -> None:
        self.root = root
        self.now = now or datetime.now(UTC)
        self.overlays = overlays
        self.tree: RepositoryTree = CommitTree(root, commit) if commit else WorkingFolder(root)
        self.specs, self.refused = read_specs(self.tree, cache)
        self._declared = InventoryDraft(root, self.tree, overlays, cache)
        self.inventory = self._declared.inventory
        self.hosts = self._declared.hosts
        self.all_hosts_read = self._declared.all_hosts_read
        refused = [problem for refused in self.refused for problem in refused.problems]
        self.problems = list(dict.fromkeys([*refused, *self._declared.problems]))

    @property
    def nodes(self) -> list[Node]:
        """The node of every host that could be read, with no image yet."""
        return self._declared.nodes

    def find_position(self, key: str, *path: Any) -> tuple[str, int, int]:
        """Return file, line and column of the entry at `path` in the spec `Kind/name`."""
        return self.spec_files[key].find_position(path)

    def specs_of_model(self, kind: type[S]) -> dict[str, S]:
        """Return the specs of one kind by name. Of two specs with the same name, the first counts."""
        by_name: dict[str, S] = {}
        for entry in self.specs:
            if isinstance(entry.spec, kind):
                by_name.setdefault(entry.spec.name, entry.spec)
        return by_name

    def specs_of_kind(self, kind: str) -> dict[str, Any]:
        """Return the specs of one kind by name, without loading a model that no document needs."""
        by_name: dict[str, Any] = {}
        for entry in self.specs:
            if entry.spec.kind == kind:
                by_name.setdefault(entry.spec.name, entry.spec)
        return by_name

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
    def parts_by_spec(self) -> dict[str, dict[frozenset[str], HostDeclaration | None]]:
        """What the nodes of each NodeSpec have, with an example. Nodes of a spec that no host names have everything."""
        specs: dict[str, NodeSpec] = self.specs_of_kind("NodeSpec")
        kinds: dict[str, dict[frozenset[str], HostDeclaration | None]] = {}
        for host in self.hosts:
            if (known := host.settings) and (spec := specs.get(known.node_spec)):
                parts = spec.list_parts(bool(known.bmc_address), bool(known.fabric), known.site_tools)
                kinds.setdefault(spec.name, {}).setdefault(parts, host)
        for name in specs.keys() - kinds.keys():
            kinds[name] = {specs[name].list_parts(True, True, TOOLS_OF_SITE): None}
        return kinds

    @cached_property
    def spec_files(self) -> dict[str, SpecFile]:
        """The spec files by `Kind/name`. Of two specs with the same name, the first counts."""
        return index_spec_files(self.specs)
