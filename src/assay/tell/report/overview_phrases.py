"""The sentences of the overview page: what changed and where."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from assay.model.page import format_quantity
from assay.model.text.lists import fold_names, format_list, format_percent
from assay.model.timestamps import format_duration
from assay.tell.report.failure_cards import shorten_check
from assay.tell.report.fleet_week import LossCause
from assay.tell.report.overview_model import FleetOverview, HolderSummary


def headline(overview: FleetOverview) -> str:
    """Return the number of new incidents as one sentence."""
    if overview.first and not overview.incidents:
        return "Nothing fails in the first run"
    if not overview.incidents and overview.lost:
        on = format_quantity(len({change.holder for change in overview.lost}), "place")
        return f"{format_quantity(len(overview.lost), 'outcome')} on {on} can no longer be judged {since(overview)}"
    if not overview.incidents:
        return f"Nothing broke {since(overview)}"
    holders = {incident.holder for incident in overview.incidents}
    where = format_quantity(len(holders), "place" if any("/" in holder for holder in holders) else "node")
    count = format_quantity(len(overview.incidents), "incident" if overview.first else "new incident")
    return f"{count} on {where} {'in the first run' if overview.first else since(overview)}"


def where(overview: FleetOverview) -> str:
    """Return what happened and where, the widest first; "" for nothing."""
    return _list_first([f"{card.title}: {card.reach}" for card in overview.cards or overview.unknown_cards], 3, "; ")


def since(overview: FleetOverview) -> str:
    """Return the time of the run to compare with: `since yesterday 14:02 UTC`."""
    now, then = _time(overview.newest.at), _time(overview.since.at)
    days = (now.date() - then.date()).days
    day = "" if days == 0 else "yesterday " if days == 1 else f"{then:%-d %b} "
    return f"since {day}{then:%H:%M} UTC"


def waiting(overview: FleetOverview) -> str:
    """Return how many failures wait for the rollout, and on how many nodes."""
    nodes = len({change.holder for change in overview.waiting})
    return f"{format_quantity(len(overview.waiting), 'failure')} on {format_quantity(nodes, 'node')}"


def waiting_nodes(overview: FleetOverview) -> str:
    """Return the names of the nodes that wait for the rollout."""
    return format_list(fold_names({change.holder for change in overview.waiting}), 12)


def checks(names: Sequence[str], shown: int = 3) -> str:
    """Return the short names of the first checks."""
    return _list_first([shorten_check(name) for name in names], shown)


def names(holders: Sequence[HolderSummary]) -> str:
    """Return names of nodes, with ranges for consecutive ones."""
    return format_list(fold_names(holder.name for holder in holders), 12)


def holder(overview: FleetOverview, holder: HolderSummary) -> str:
    """Return how a node, rack or fabric is, with its first problems, a line each."""
    if holder.measured is None:
        return f"{holder.name}: never judged"
    facts = [format_quantity(holder.failing, "failure")] if holder.failing else []
    facts += [f"{format_quantity(holder.faults, 'fault')} of logs"] if holder.faults else []
    facts += [f"{holder.unknown} cannot be judged"] if holder.unknown else []
    facts += [f"{holder.newly} of them new"] if holder.newly and not overview.first else []
    facts += [f"{holder.waiting} wait for the rollout"] if holder.waiting else []
    facts += [f"{holder.excused} excused"] if holder.excused else []
    if holder.stale:
        age = format_duration(timedelta(seconds=overview.newest.at - holder.measured))
        facts.append(f"{format_quantity(holder.stale, 'check')} passed on evidence too old; the newest is {age} old")
    well = f"{format_quantity(holder.judged, 'check')} well" if holder.judged else "nothing judged, all was skipped"
    more = [f"and {holder.left_out} more"] if holder.left_out else []
    return "\n".join([f"{holder.name}: {', '.join(facts) or well}", *holder.problems, *more])


def served(share: float | None) -> str:
    """Return the share of time in which nodes served."""
    return "none served" if share is None else format_percent(share)


def change(cause: LossCause) -> str:
    """Return by how much a cause grew or shrank, and whether its incidents did so by more than chance."""
    (this, before), lost = cause.incidents, cause.hours[0] - cause.hours[1]
    times = f", {this / before:.1f} times the incidents" if this and before and this != before else ""
    chance = f": {'more than chance' if cause.is_sure else 'may be chance'}" if this or before else ""
    return f"{lost:+.1f} h{times}{chance}"


def _list_first(names: Sequence[str], shown: int, mark: str = ", ") -> str:
    left = len(names) - shown
    return mark.join(names[:shown]) + (f" and {left} more" if left > 0 else "")


def _time(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)
