"""`since_last_pass(counter)`: how much a counter grew since this check last passed on this subject."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from assay.harness.silence import Unjudgeable
from assay.harness.told import Told, told
from assay.harness.trial import Trial
from assay.model.evidence import Evidence
from assay.model.outcome import Recorded

if TYPE_CHECKING:
    from assay.ledger.store import Ledger

IDENTITY = ("serial", "guid", "uuid", "mac")


class Passes(Protocol):
    """What is asked of the ledger."""

    def last_pass(self, check: str, subject: str) -> Recorded | None:
        """Return the newest pass of a check on a subject."""


class PassesBefore:
    """The passes of a ledger as they were when a run was judged, so that it can be judged again."""

    def __init__(self, ledger: Ledger, run: str) -> None:
        self._ledger, self._run = ledger, run

    def last_pass(self, check: str, subject: str) -> Recorded | None:
        """Return the newest pass that was recorded before the run."""
        return self._ledger.last_pass(check, subject, before=self._run)


class SinceLastPass:
    """Takes counters that restart when the node boots or the part is replaced; those then count from zero.

    Without a ledger, without an earlier pass or without its evidence, the whole count is returned: more, never less.
    """

    def __init__(self, trial: Trial, passes: Callable[[], Passes | None]) -> None:
        self._trial, self._passes = trial, passes

    def __call__(self, counter: Any) -> Any:
        """Return the growth of a counter. Raises Unjudgeable for anything but a number read from evidence."""
        path = counter.path if isinstance(counter, Told) else ()
        if not path or not isinstance(counter, int | float):
            raise Unjudgeable(f"since_last_pass needs a number as evidence gave it, not {counter!r}")
        earlier = self._earlier(path) if counter else None  # nothing counted is nothing grown
        grown = counter - earlier if earlier is not None and earlier <= counter else counter
        return told(grown + 0, path=path)

    def _earlier(self, path: tuple[str, ...]) -> Any:
        ledger = self._passes()
        last = ledger.last_pass(self._trial.check, str(self._trial.subject)) if ledger else None
        before = self._trial.shelf.older(last.outcome.evidence) if last else None
        now = self._trial.look(path[0]).evidence
        if before is None or _thing(before, path) != _thing(now, path):
            return None
        reading = before.read(*path[1:])
        return reading.value if reading.kind == "value" else None


def _thing(evidence: Evidence, path: tuple[str, ...]) -> list[Any]:
    """Return what tells one boot and one physical part from another: boot id, and ids found along the path."""
    along = [evidence.read(*path[1:depth], name) for depth in range(2, len(path)) for name in IDENTITY]
    return [evidence.read("probe", "host", "boot_id"), *(reading.value for reading in along)]
