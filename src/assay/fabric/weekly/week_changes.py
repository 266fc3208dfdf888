"""What changed since the week before: which findings are new, and which are gone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from assay.fabric.fabric_answers import ChangedPort, WeekChangesAnswer
from assay.fabric.weekly.evaluation import RankedPort, WeeklyEvaluation
from assay.fabric.weekly.findings import PortFinding
from assay.model.specs.fabric.cable import PortId


@dataclass(frozen=True)
class WeekChanges:
    """The difference from the week before, which ended at `since`. None: there is no such week.

    `new` are ports with a finding that they did not have, with these findings only. `gone` are ports with findings that
    they no longer have. `staying` counts the ports whose findings are the same. `errors` are those of both weeks.
    """

    since: datetime | None = None
    new: tuple[RankedPort, ...] = ()
    gone: tuple[RankedPort, ...] = ()
    staying: int = 0
    errors: tuple[int, int] = (0, 0)

    def __str__(self) -> str:
        if self.since is None:
            return "there is no evaluation of the week before to compare with"
        before, now = self.errors
        return (
            f"since {self.since:%Y-%m-%d %H:%M} UTC: {len(self.new)} new, {len(self.gone)} gone, {self.staying} as"
            f" before; {now:,} errors, {before:,} before"
        )

    def make_answer(self) -> WeekChangesAnswer | None:
        """Return the changes, None if there is nothing to compare with."""
        if self.since is None:
            return None
        return WeekChangesAnswer(
            since=self.since.isoformat(),
            new=list(map(_show_port, self.new)),
            gone=list(map(_show_port, self.gone)),
            staying=self.staying,
            errors_before=self.errors[0],
        )


def compare_weeks(before: WeeklyEvaluation | None, now: WeeklyEvaluation) -> WeekChanges:
    """Compare an evaluation with that of the week before. Findings are the same if port, kind and reading are."""
    if before is None:
        return WeekChanges()
    was, will = _index(before.ranked), _index(now.ranked)
    new, gone = _subtract(now.ranked, was), _subtract(before.ranked, will)
    changed = {ranked.port.end.port_id for ranked in (*new, *gone)}
    staying = sum(ranked.port.end.port_id not in changed for ranked in now.ranked)
    return WeekChanges(before.week.end, new, gone, staying, (before.errors, now.errors))


def _index(ranked: Iterable[RankedPort]) -> set[tuple[PortId, str, str]]:
    return {_identify(each, finding) for each in ranked for finding in each.findings}


def _identify(ranked: RankedPort, finding: PortFinding) -> tuple[PortId, str, str]:
    return ranked.port.end.port_id, finding.kind, finding.what


def _subtract(ranked: Iterable[RankedPort], known: set[tuple[PortId, str, str]]) -> tuple[RankedPort, ...]:
    """Return the ports with those findings that are not known."""
    left = (
        replace(each, findings=tuple(finding for finding in each.findings if _identify(each, finding) not in known))
        for each in ranked
    )
    return tuple(each for each in left if each.findings)


def _show_port(ranked: RankedPort) -> ChangedPort:
    return ChangedPort(port=ranked.port.end, says=[finding.says for finding in ranked.findings])
