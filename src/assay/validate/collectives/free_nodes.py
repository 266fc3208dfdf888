"""Which nodes take part in a search, and why the others do not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from assay.adapters.scheduler import StatusReadings, format_jobs
from assay.model.facts import fact


@fact
class FreeNodes:
    """The nodes that take part, and the others."""

    free: tuple[str, ...]
    """The free nodes."""
    excluded: Mapping[str, str]
    """The other nodes, each with the reason."""

    @property
    def names_by_reason(self) -> Mapping[str, Sequence[str]]:
        """The excluded nodes by their reason, the most frequent first."""
        by_reason: defaultdict[str, list[str]] = defaultdict(list)
        for name, reason in self.excluded.items():
            by_reason[reason].append(name)
        return dict(sorted(by_reason.items(), key=lambda item: -len(item[1])))


def select_free_nodes(
    names: Collection[str], wanted: Collection[str], readings: StatusReadings, holds: Mapping[str, str]
) -> FreeNodes:
    """Return which of `names` are free: no job, no cordon, no hold, and a scheduler that says so.

    `wanted` are the nodes that a person named; empty means all. `holds` has the reason of each held node.
    """
    excluded = {name: reason for name in names if (reason := _find_reason(name, wanted, readings, holds))}
    return FreeNodes(tuple(name for name in names if name not in excluded), excluded)


def _find_reason(name: str, wanted: Collection[str], readings: StatusReadings, holds: Mapping[str, str]) -> str:
    if wanted and name not in wanted:
        return "not selected"
    if name in holds:
        return f"held: {holds[name]}"
    if name in readings.errors:
        return f"cannot tell whether it is in use: {readings.errors[name].splitlines()[0]}"
    status = readings.statuses.get(name)
    if status is None:
        return "cannot tell whether it is in use: its scheduler does not know it"
    if status.jobs:
        return f"in use: {format_jobs(status.jobs)}"
    if status.cordon or status.foreign_cordon:
        return f"cordoned: {status.foreign_cordon or status.cordon}"
    return ""
