"""The shapes of what `assay reconcile`, `schedules` and `rma` print with `--format json`."""

from __future__ import annotations

from typing import Any

from assay.model.facts import fact, shown


@fact
class EntryInAnswer:
    """An entry of the ledger."""

    at: str
    """When it was written: ISO 8601 with the offset of UTC."""
    kind: str
    """The kind of entry, such as fault, decision, transition or effect.verified."""
    node: str
    """The node that it is about; "" for none."""
    body: dict[str, Any]
    """The fields of an entry of this kind."""


@fact
class PassInAnswer:
    """One pass of the controller over the fleet."""

    at: str
    """When it began: ISO 8601 with the offset of UTC."""
    changes: list[EntryInAnswer]
    """The entries that it wrote into the ledger, in order."""
    runs: list[str]
    """The ids of the runs of checks that it made."""


@fact
class DueSlot:
    """A scheduled job that is due and that a round does not run."""

    schedule: str
    """The name of the schedule."""
    of: str
    """The pool or fabric that it is for."""
    slot: str
    """When it was due: ISO 8601 with the offset of UTC."""


@fact
class ReconcileAnswer:
    """What one round of the controller did."""

    passes: list[PassInAnswer]
    """The passes of the round."""
    due: list[DueSlot]
    """The scheduled jobs that are due: `assay schedules run` runs them."""


@fact
class LastSlot:
    """The last slot of a schedule."""

    slot: str
    """When it was due: ISO 8601 with the offset of UTC."""
    ended: str
    """How it ended: done, failed or lost; begun if it still runs."""
    reason: str
    """Why it ended so, or which attempt it is."""


@fact
class ScheduleInAnswer:
    """One schedule for one pool or fabric."""

    schedule: str
    """The name of the schedule."""
    does: str
    """What it does, such as observe or validate."""
    of: str
    """The pool or fabric that it is for."""
    when: str
    """When it runs: a cron expression with its time zone, or every so many minutes."""
    last: LastSlot | None
    """Its last slot; null if there was none, or if the ledger cannot be read."""
    due: bool | None
    """Whether it is due now; null if that is not known."""
    next: str | None
    """When it runs next: ISO 8601 with the offset of UTC; null if nothing says it."""


@fact
class SchedulesAnswer:
    """Every schedule: its last slot, how that ended, and the next one."""

    schedules: list[ScheduleInAnswer]
    """The schedules."""
    problem: str | None = shown(omit=True, default=None)
    """Why the ledger cannot be read; missing if it can. The exit code is 2 then."""


@fact
class RanSlot:
    """A scheduled job that was run now."""

    of: str
    """The pool or fabric that it was for."""
    schedule: str
    """The name of the schedule."""
    does: str
    """What it does, such as observe or validate."""
    slot: str
    """When it was due: ISO 8601 with the offset of UTC."""
    ended: str
    """How it ended: done, failed or lost."""
    reason: str
    """Why it ended so."""


@fact
class ScheduledRunsAnswer:
    """The scheduled jobs that were due and were run now."""

    ran: list[RanSlot]
    """The jobs; with one that failed, the exit code is 2."""


@fact
class LoadPartCoverage:
    """How one part of a load has covered one GPU."""

    covered_at: str | None
    """When it last covered the GPU: ISO 8601 UTC; null for never."""
    hours_since: float | None
    """How many hours ago that was; null for never."""
    visits: int
    """How many visits it covered the GPU in."""
    cut: int
    """How many visits a customer's job cut short."""
    lacking: int
    """In how many visits the node lacked something for it."""
    units: int | None = shown(omit=True, default=None)
    """How many units it computed in all; only for a part that counts in units."""
    tests: dict[str, int] | None = shown(omit=True, default=None)
    """The units by test; only for a part that counts in units."""
    last_unit: str | None = shown(omit=True, default=None)
    """The unit at which it stands; only for a part that counts in units."""


@fact
class CoveredGpu:
    """A GPU, known by its serial number."""

    serial: str
    """The serial number."""
    node: str
    """The node where it was seen last."""
    parts: dict[str, LoadPartCoverage]
    """How each part of the load has covered it."""


@fact
class WaitPercentiles:
    """How long at most customers waited, in milliseconds."""

    p50: int | None
    """Half of the visits did not exceed it; null if none is known."""
    p95: int | None
    """95 % of the visits did not exceed it; null if none is known."""
    p99: int | None
    """99 % of the visits did not exceed it; null if none is known."""
    p100: int | None
    """No visit exceeded it; null if none is known."""


@fact
class ScheduledVisits:
    """What the visits of one schedule to idle nodes of one pool cost customers."""

    schedule: str
    """The name of the schedule."""
    pool: str
    """The pool; "" for nodes in none."""
    visits: int
    """How many visits there were."""
    made_room: int
    """How many of them ended because a customer's job came."""
    gone_ms: WaitPercentiles
    """How long at most such a job waited until the load was gone."""


@fact
class CoverageAnswer:
    """Which parts of a load each GPU has seen in its idle time, and what that cost customers."""

    gpus: list[CoveredGpu]
    """The GPUs, by node."""
    visits: list[ScheduledVisits]
    """The visits, by schedule and pool."""


@fact
class SuspectPart:
    """A part that open hardware faults name."""

    kind: str
    """The kind of the part, such as gpu; node for the whole node."""
    place: str
    """Its place in the node; "" for the whole node."""
    serial: str
    """Its serial number."""
    faults: list[str]
    """The fault classes."""


@fact
class RequiredPhoto:
    """A photo that the dossier needs."""

    name: str
    """The name of the photo, such as label."""
    shows: str
    """What it must show."""
    files: list[str]
    """The files that are this photo; none if it is missing."""


@fact
class TakenPhoto:
    """A photo in the dossier."""

    file: str
    """The name of the file."""
    sha256: str
    """Its digest."""
    bytes: int
    """Its size in bytes."""
    who: str
    """Who added it; "" if nobody has."""
    at: str
    """When: ISO 8601 with the offset of UTC; "" if nobody has."""


@fact
class DossierAnswer:
    """The dossier of a node that goes back to its vendor."""

    node: str
    """The name of the node."""
    archive: str
    """The archive, relative to the fleet repository."""
    bytes: int
    """The size of the archive in bytes."""
    sha256: str
    """The digest of the archive."""
    suspects: list[SuspectPart]
    """The parts that go back."""
    folder: str
    """The folder for photos, relative to the fleet repository."""
    photos: list[RequiredPhoto]
    """The photos that the dossier needs."""
    taken: list[TakenPhoto]
    """The photos that it has."""
    refused: dict[str, str]
    """The files in the folder that were not taken, each with the reason."""
