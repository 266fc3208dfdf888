"""A node's burn-in for people and machines: how far it is, what ran how long on which part, and what drifts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from assay.model.facts import extend, fact
from assay.model.text.lists import fold_names

if TYPE_CHECKING:
    from assay.decide.state.burn_in_record import BurnInRecord
    from assay.decide.state.node_state import NodeState


@fact
class BurnInCoverage:
    """How long one kind of load ran on one part."""

    part: str
    """The part of the node, such as gpu3."""
    serial: str
    """The serial number of the part; "" if it is not known."""
    load: str
    """The kind of load."""
    hours: float
    """How many hours it ran there with results. What loads the whole node counts for each of its DIMMs or GPUs."""


@fact
class BurnInStatus:
    """The last burn-in of a node. Hours are hours of load; times are ISO 8601 with the offset of UTC."""

    id: str
    """The id of the burn-in."""
    spec: str
    """The BurnIn spec that it goes by."""
    of_this_stay: bool
    """Whether it belongs to the node's present stay in its state; false for an earlier one."""
    outcome: Literal["running", "done", "failed", "incomplete", "stopped", "none"]
    """How it ended."""
    reason: str
    """Why it ended so, or what it waits for; "" if there is nothing to say."""
    started: str
    """When it started."""
    at: str
    """When its progress was last read."""
    hours: float
    """How many hours of load are done."""
    planned_hours: float
    """How many hours of load are planned, with `held_hours`."""
    held_hours: float
    """How many hours were added because something drifts."""
    phase: str
    """The phase that runs now, or ran last; "" before the first."""
    ends_about: str | None
    """When it will end, as far as can be told; null if no load runs."""
    reboots: int
    """How often the node started again meanwhile."""
    silent: str
    """Since when and why the node cannot be read; "" if it can."""
    interruptions: list[str]
    """What kept the load from going on, or assay from reading it, one text each."""
    is_stopped: bool
    """Whether no load of it runs on the node any more, as far as can be told."""
    drifts: list[str]
    """What drifts under load, one text each."""
    gflops: dict[str, float]
    """The computing rate in Gflop/s, by GPU."""
    coverage: list[BurnInCoverage]
    """How long which load ran on which part."""


def make_burn_in_status(state: NodeState) -> BurnInStatus | None:
    """Return the last burn-in of a node, None if it had none."""
    record = state.burn_in
    if record is None:
        return None
    return extend(
        BurnInStatus,
        record,
        of_this_stay=record.stay_id == state.stay_id,
        outcome=record.outcome or "running",
        started=record.started_at,
        hours=round(record.hours_done, 2),
        ends_about=record.estimate_end().isoformat() if record.is_running and not record.over_at else None,
        interruptions=list(record.interruptions),
        is_stopped=not record.is_running and not record.must_stop,
        drifts=list(record.drifts),
        gflops=dict(record.rates),
        coverage=[
            BurnInCoverage(part=subject, serial=serial, load=part, hours=hours)
            for subject, serial, part, hours in record.list_coverage()
        ],
    )


def describe_burn_in_of_stay(state: NodeState) -> str:
    """Return the burn-in of the present stay in one line, "" if there is none."""
    record = state.burn_in
    if record and record.must_stop:
        return f"{record.describe()}; its load may still run, since the node has not answered the order to stop"
    return record.describe() if record and record.stay_id == state.stay_id and record.outcome != "none" else ""


def format_burn_in(state: NodeState) -> Iterator[str]:
    """Yield the lines of `assay explain`: all about a burn-in of the present stay, and the drifts of an earlier one."""
    record = state.burn_in
    if record is None:
        return
    if not (text := describe_burn_in_of_stay(state)):
        yield from record.describe_drifts()
        return
    restarts = f", went on after {record.reboots} reboots" if record.reboots else ""
    yield f"{text}{restarts}"
    yield from (f"interrupted: {line}" for line in record.interruptions)
    yield from (f"{load} ran {hours:.1f} h on {', '.join(names)}" for load, hours, names in _group_coverage(record))
    yield from (f"drifts: {line}" for line in record.drifts)


def _group_coverage(record: BurnInRecord) -> Iterator[tuple[str, float, list[str]]]:
    """Yield load part, hours, and the parts of the node that it ran on so long; long lists are folded."""
    groups: dict[tuple[str, float], list[str]] = {}
    for subject, _, part, hours in record.list_coverage():
        groups.setdefault((part, round(hours, 1)), []).append(subject)
    for (part, hours), names in sorted(groups.items()):
        yield part, hours, fold_names(names)
