"""The rollouts of one ledger, kept warm: each entry is read once. Safe for threads."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from threading import RLock

from assay.act.loop.node_state_and_outcome_cache import LatestOutcomeCache
from assay.decide.rollouts.rollout_history import ROLLOUT_KINDS, Rollout, RolloutHistory
from assay.ledger.store import Ledger
from assay.model.outcome import RecordedOutcome


class RolloutCache:
    """Reads the entries about rollouts that are new."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger, self._history, self._lock = ledger, RolloutHistory(), RLock()
        self._outcomes = LatestOutcomeCache(ledger)

    def read(self) -> RolloutHistory:
        """Return the rollouts as they are now. The next call changes what it returned."""
        with self._lock:
            head = self._ledger.head()
            if head > self._history.seq:
                self._history.apply(self._ledger.entries(kinds=ROLLOUT_KINDS, after=self._history.seq))
                self._history.seq = max(head, self._history.seq)
            return self._history

    def find_active(self) -> Rollout | None:
        """Return the rollout that has not ended, None without one."""
        with self._lock:
            return self.read().find_active()

    def read_outcomes(self, names: Collection[str]) -> Mapping[str, tuple[RecordedOutcome, ...]]:
        """Return the newest outcomes of nodes that came back, read again only after another run was recorded."""
        return self._outcomes.get(names, keep=names)
