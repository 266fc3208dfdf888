"""Where views read: the declared fleet, its ledger, assay's own data folder, and the fleet's clock."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from assay.decide.state.node_state import NodeState
    from assay.ledger.store import Ledger
    from assay.model.clock import Clock
    from assay.model.fleet import Fleet


class RecordSource(Protocol):
    """What views are made from. The workspace of a command is one, and so are the records of a server."""

    @property
    def fleet(self) -> Fleet:
        """The declared fleet."""

    @property
    def ledger_for_reading(self) -> Ledger:
        """The existing ledger; nothing is written to it."""

    @property
    def data_dir(self) -> Path:
        """The folder `.assay/` of the fleet."""

    @property
    def clock(self) -> Clock:
        """The fleet's time."""

    def read_node_states(self) -> Sequence[NodeState]:
        """Return the state of every enrolled node, by pool and name."""
