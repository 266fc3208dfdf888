"""The workspace of a verb: the fleet repository, its ledger, its evidence and its clock, and what verbs read of them.

Verbs that also work outside a fleet repository find specs here: the named ones, this folder's, or assay's own. A
damaged file of history is left out and named.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

from assay.cli.context_line import CHOSEN, print_context
from assay.decide.rollouts.rollout_history import ROLLOUTS, RolloutHistory
from assay.decide.state.asset_history import (
    ASSET_ENTRY_KINDS,
    NODES_WITH_RETURNED_PARTS,
    describe_returned_part,
    find_returned_parts,
)
from assay.decide.state.node_state import NodeState
from assay.declare.home import Home, find_home, require_repository
from assay.ledger.errors import LedgerReadWarning, make_other_context_error
from assay.ledger.location import is_mixed, locate_existing_ledger, locate_ledger, make_mixed_error
from assay.model.clock import Clock, SystemClock
from assay.model.errors import AssayError
from assay.model.ledger_entry import LedgerEntry
from assay.model.text.lists import suggest_names

if TYPE_CHECKING:
    from assay.act.loop.context import ControllerContext
    from assay.act.loop.fleet_reload import FleetReloader
    from assay.decide.drift.sync_report import SyncReport
    from assay.ledger.location import EntrySource
    from assay.ledger.store import Ledger
    from assay.model.fleet import Fleet
    from assay.model.ledger_entry import Projection
    from assay.model.node import Node
    from assay.model.specs.fault_catalog import FaultCatalog

S = TypeVar("S")


@dataclass(frozen=True)
class Workspace:
    """The fleet repository at `root`, and the home that is chosen: the fleet's or its lab's. `context` chooses one.

    Raises AssayError for a folder that is none, so that no verb makes anything there.
    """

    root: Path
    context: str = ""

    def __post_init__(self) -> None:
        require_repository(self.root)

    @cached_property
    def home(self) -> Home:
        """The chosen home. Raises AssayError for a context that there is not."""
        home = find_home(self.root, self.context)
        CHOSEN.set(home)
        return home

    @property
    def data_dir(self) -> Path:
        """The folder of assay's own data, which git ignores."""
        return self.home.folder

    @property
    def evidence_dir(self) -> Path:
        """The evidence store: `latest/NODE.json` and `objects/`."""
        return self.data_dir / "evidence"

    @property
    def reports_dir(self) -> Path:
        """Runs, the Allure report and its history."""
        return self.home.reports

    @property
    def overlays(self) -> tuple[Path, ...] | None:
        """The inventory files of the lab, if it is chosen: they overlay the repository's."""
        return self.home.overlays

    def announce(self) -> None:
        """Say on stderr, once, what this command works on. Raises AssayError if that is a lab that does not answer."""
        self.home.require_answer()
        if not self.home.is_lab and is_mixed(self.data_dir):
            raise make_mixed_error(self.data_dir)
        self._print_context_once()

    def print_page(self, form: str, *path: str) -> None:
        """Print the address of a page below an answer for people, if the policy says where pages are."""
        with suppress(AssayError):
            if form == "text" and (page := self.fleet.find_page(*path)):
                print(f"page: {page}")  # noqa: T201 — the answer

    def _print_context_once(self) -> None:
        if "announced" not in self.__dict__:
            self.__dict__["announced"] = True
            print_context(self.home)

    @cached_property
    def fleet(self) -> Fleet:
        """The declared fleet, fetched from the cache where assay keeps data of this repository."""
        if not self.data_dir.is_dir():
            from assay.declare.loader import load_fleet

            return load_fleet(self.root, self.overlays)
        from assay.declare.fleet_cache import load_cached_fleet

        return load_cached_fleet(self.root, self.overlays)

    @property
    def ledger_location(self) -> Path | str:
        """The ledger's path or URL: $ASSAY_LEDGER (a path or a postgresql:// URL), else the file in the home.

        A lab's is always in its home.
        """
        if not self.home.is_lab and is_mixed(self.data_dir):
            warnings.warn(LedgerReadWarning(str(make_mixed_error(self.data_dir))), stacklevel=2)
        return locate_ledger(self.data_dir, is_lab=self.home.is_lab)

    @property
    def has_ledger(self) -> bool:
        """Whether there is a ledger already."""
        return bool(locate_existing_ledger(self.data_dir, is_lab=self.home.is_lab))

    @property
    def seal_register(self) -> Path:
        """The register of the ledger's seals, with the stamps of time-stamp authorities."""
        return self.data_dir / "seals.jsonl"

    @cached_property
    def ledger(self) -> Ledger:
        """The ledger of a command that acts, created on first use. Raises AssayError for a lab that is down."""
        from assay.ledger.store import Ledger

        self.announce()
        return Ledger.open(self.ledger_location, context=self.home.context)

    @cached_property
    def ledger_for_reading(self) -> Ledger:
        """The existing ledger, for verbs that only read: a full or read-only disk or a lock does not stop them."""
        from assay.ledger.store import Ledger

        return Ledger.open_for_reading(self.ledger_location, context=self.home.context)

    def controller_context(
        self, progress: Callable[[str], None] = lambda _: None, *, reads_only: bool = False
    ) -> ControllerContext:
        """Return the context of controller and actions; `progress` shows one line to a person who waits.

        If it `reads_only`, the ledger must exist, and nothing is written to it.
        """
        from assay.act.loop.context import ControllerContext
        from assay.observe.evidence_store import EvidenceStore

        evidence = EvidenceStore(self.evidence_dir)
        ledger = self.ledger_for_reading if reads_only else self.ledger
        return ControllerContext(
            self.fleet, ledger, evidence, self.clock, self.data_dir, self.reports_dir, progress=progress
        )

    def fleet_reloader(self, report: Callable[[str], None]) -> FleetReloader:
        """Return the reloader, which reads this fleet again after changes; `report` shows errors in them."""
        from assay.act.loop.fleet_reload import FleetReloader
        from assay.declare.loader import load_fleet

        return FleetReloader(
            self.root,
            lambda cache: load_fleet(self.root, self.overlays, cache=cache),
            self.clock,
            report,
            self.overlays or (),
        )

    def read_entries(self) -> list[LedgerEntry]:
        """Return every entry of the ledger, in order; say on stderr if they are the lab's. Creates no ledger.

        Raises LedgerError for a ledger of the other context.
        """
        self._check_context()
        return self._entry_source.entries()

    def read_state(self, projection: Projection[S]) -> S:
        """Return what follows from the ledger's entries of some kinds. Raises AssayError as `read_entries` does."""
        self._check_context()
        return projection.fold(self._entry_source.entries(kinds=projection.kinds))

    def read_node_states(self) -> list[NodeState]:
        """Return the state of every enrolled node, by pool and name. Raises AssayError as `read_entries` does."""
        from assay.decide.state.node_projection import STORED_NODE_STATES
        from assay.ledger.location import read_stored_state

        self._check_context()
        projected = read_stored_state(STORED_NODE_STATES, self.data_dir / "cache" / "states", self._entry_source)
        return sorted(projected.node_states().values(), key=lambda state: (state.pool, state.node))

    @cached_property
    def _entry_source(self) -> EntrySource:
        from assay.ledger.location import open_source

        return open_source(self.ledger_location)

    def _check_context(self) -> None:
        """Say on stderr if the entries are the lab's. Raises LedgerError for a ledger of the other context."""
        first = self._entry_source.entries(most=1)
        if first and first[0].context != self.home.context:
            raise make_other_context_error(first[0].context, self.home.context, str(self.ledger_location))
        if self.home.is_lab:
            self._print_context_once()

    @cached_property
    def clock(self) -> Clock:
        """The lab's clock in the lab, else the system's."""
        if not self.home.is_lab or not (self.home.world / "clock.json").exists():
            return SystemClock()
        from assay.lab.world import LabWorld

        return LabWorld(self.home.world).clock()


def load_surrounding_fleet(fleet: Path | None) -> tuple[Fleet, dict[str, Node]]:
    """Return the named fleet, or the one in the current folder, with its nodes; else the shipped specs, without nodes.

    Raises AssayError if the named folder is not a fleet repository.
    """
    from assay.declare.loader import build_readable_fleet, load_fleet, read_draft
    from assay.declare.starter.new_repository import find_example

    root = fleet if fleet is not None else Path()
    if (root / "specs" / "faults").is_dir():
        loaded = load_fleet(root)
        return loaded, dict(loaded.nodes)
    if fleet is not None:
        raise AssayError("there is no fault catalogue", where=str(fleet / "specs"), fix="name a fleet repository")
    return build_readable_fleet(read_draft(find_example())), {}  # the wheel packs specs, and no inventory


def load_surrounding_catalog(fleet: Path | None) -> FaultCatalog:
    """Return the fault catalogue of the named fleet, or of the current folder, else the shipped one.

    Mistakes in other specs do not matter. Raises AssayError for a mistake in a catalogue, or if a named fleet has none.
    """
    from assay.declare.starter.new_repository import find_example
    from assay.model.specs.fault_catalog import merge_catalogs

    catalogs = _read_catalogs(fleet if fleet is not None else Path())
    if fleet is not None and not catalogs:
        raise AssayError("there is no fault catalogue", where=str(fleet / "specs"), fix="name a fleet repository")
    try:
        return merge_catalogs(catalogs or _read_catalogs(find_example()))
    except ValueError as error:
        fix = "`assay check` names the lines"
        raise AssayError(str(error), where=str((fleet or Path()) / "specs"), fix=fix) from None


def _read_catalogs(root: Path) -> list[FaultCatalog]:
    """Return the fault catalogues of a fleet, none if there is no fleet. Raises AssayError for a mistake in one."""
    from assay.declare.repository.tree import WorkingFolder
    from assay.declare.spec_reader import read_specs
    from assay.model.specs.fault_catalog import FaultCatalog

    specs, rejected = read_specs(WorkingFolder(root.absolute()))
    for document in rejected:
        if document.kind == "FaultCatalog" and document.problems:
            first = document.problems[0]
            raise AssayError(first.message, where=f"{root / first.where}", fix=first.fix)
    return [entry.spec for entry in specs if isinstance(entry.spec, FaultCatalog)]


def load_fleet_records(workspace: Workspace) -> tuple[list[NodeState], dict[str, list[str]], RolloutHistory]:
    """Return the node states, node → notes on parts in it that were sent back once, and the rollouts."""
    states, rollouts = workspace.read_node_states(), workspace.read_state(ROLLOUTS)
    has_returned = bool(workspace.read_state(NODES_WITH_RETURNED_PARTS))
    return states, _describe_returned_by_node(workspace.read_entries()) if has_returned else {}, rollouts


def find_node_state(workspace: Workspace, name: str) -> NodeState:
    """Return the state of one node. Raises AssayError for a node that is unknown or was never observed."""
    return pick_node_state(workspace, workspace.read_node_states(), name)


def pick_node_state(workspace: Workspace, states: Iterable[NodeState], name: str) -> NodeState:
    """Return the state of one node out of all. Raises AssayError for one that is unknown or was never observed."""
    known = {state.node: state for state in states}
    if name in known:
        return known[name]
    declared = list(workspace.fleet.nodes)
    if name in declared:
        raise AssayError(f"{name} is in the inventory but was never observed", fix="run: assay reconcile --once")
    hint = suggest_names(name, {*known, *declared}, "`assay status` lists the nodes")
    raise AssayError(f"there is no node {name}", fix=hint)


def _describe_returned_by_node(entries: Iterable[LedgerEntry]) -> dict[str, list[str]]:
    relevant = [entry for entry in entries if entry.kind in ASSET_ENTRY_KINDS]
    nodes = {entry.node for entry in relevant if entry.kind == "part.returned"}
    parts = {name: find_returned_parts(entry for entry in relevant if entry.node == name) for name in nodes}
    return {name: [describe_returned_part(entry) for entry in returned] for name, returned in parts.items() if returned}


def load_sync_report(workspace: Workspace, nodes: Sequence[str] | None = None) -> SyncReport:
    """Return how these nodes (None: all) compare with the repository. Creates no ledger. Raises AssayError."""
    from assay.act.loop.sync_reading import read_sync

    states = {state.node: state for state in workspace.read_node_states()}
    ledger = workspace.ledger_for_reading if workspace.has_ledger else None
    return read_sync(workspace.fleet, ledger, states, workspace.clock.now(), nodes)


def tell_left_out(error: AssayError) -> None:
    """Name a damaged file of history on stderr."""
    typer.echo(f"left out: {error}", err=True)


def require_known(names: Sequence[str], known: Iterable[str], noun: str) -> None:
    """Raise AssayError for the first of `names` that is not in `known`; `noun` is its kind, such as "pool"."""
    existing = dict.fromkeys(known)
    for name in names:
        if name not in existing:
            raise AssayError(f"there is no {noun} {name}", fix=suggest_names(name, existing.keys()))


def select_nodes(fleet: Fleet, names: Sequence[str], pools: Sequence[str]) -> list[str]:
    """Return the selected nodes in the order of the inventory: those of `names` that are in `pools`; empty means all.

    Raises AssayError for an unknown node or pool, and if no node is left.
    """
    require_known(pools, (node.pool for node in fleet.nodes.values()), "pool")
    require_known(names, fleet.nodes, "node")
    wanted = set(names) or fleet.nodes.keys()
    selected = [node.name for node in fleet.nodes.values() if node.name in wanted and (not pools or node.pool in pools)]
    if not selected:
        reason = "none of these nodes is in these pools" if fleet.nodes else "the inventory is empty"
        raise AssayError(f"no node is selected: {reason}", where=str(fleet.root / "inventory"))
    return selected
