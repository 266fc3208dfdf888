"""The workspace of a verb: the fleet repository, its ledger, its evidence and its clock."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from assay.cli.context_line import CHOSEN, print_context
from assay.declare.home import Home, find_home
from assay.ledger.copies.mixed_home import is_mixed, make_mixed_error
from assay.ledger.errors import LedgerReadWarning, make_other_context_error
from assay.ledger.location import locate_existing_ledger, locate_ledger
from assay.model.clock import Clock, SystemClock

if TYPE_CHECKING:
    from assay.act.loop.context import ControllerContext
    from assay.act.loop.fleet_reload import FleetReloader
    from assay.decide.state.node_state import NodeState
    from assay.ledger.store import Ledger
    from assay.model.fleet import Fleet
    from assay.model.ledger_entry import LedgerEntry


@dataclass(frozen=True)
class Workspace:
    """The fleet repository at `root`, and the home that is chosen: the fleet's or its lab's. `context` chooses one."""

    root: Path
    context: str = ""

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

    def _print_context_once(self) -> None:
        if "announced" not in self.__dict__:
            self.__dict__["announced"] = True
            print_context(self.home)

    @cached_property
    def fleet(self) -> Fleet:
        """The declared fleet, fetched from the cache where assay keeps data of this repository."""
        if not self.data_dir.is_dir():
            from assay.declare.fleet_loader import load_fleet

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
        from assay.declare.fleet_loader import load_fleet

        return FleetReloader(
            self.root, lambda: load_fleet(self.root, self.overlays), self.clock, report, self.overlays or ()
        )

    def read_entries(self) -> list[LedgerEntry]:
        """Return every entry of the ledger, in order; say on stderr if they are the lab's. Creates no ledger.

        Raises LedgerError for a ledger of the other context.
        """
        from assay.ledger.location import read_all_entries

        entries = read_all_entries(self.ledger_location)
        if entries and entries[0].context != self.home.context:
            raise make_other_context_error(entries[0].context, self.home.context, str(self.ledger_location))
        if self.home.is_lab:
            self._print_context_once()
        return entries

    def read_node_states(self) -> list[NodeState]:
        """Return the state of every enrolled node, by pool and name. Raises AssayError as `read_entries` does."""
        from assay.decide.state.node_state_projection import project_node_states

        states = project_node_states(self.read_entries())
        return sorted(states.values(), key=lambda state: (state.pool, state.node))

    @cached_property
    def clock(self) -> Clock:
        """The lab's clock in the lab, else the system's."""
        if not self.home.is_lab or not (self.home.world / "clock.json").exists():
            return SystemClock()
        from assay.lab.world import LabWorld

        return LabWorld(self.home.world).clock()
