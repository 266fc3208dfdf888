"""A comparison as text: the worst first, what has one cause together, and no more than people read."""

from __future__ import annotations

from collections.abc import Iterator

from assay.fabric.compare.cabling_repair import CablingRepair
from assay.fabric.compare.common_causes import group_by_common_cause
from assay.fabric.compare.compare import FabricComparison
from assay.fabric.compare.repair_cost import measure_cost
from assay.fabric.compare.shared_plugs import drop_other_planes

MAX_REPAIRS, MAX_MEMBERS, MAX_NOTES = 20, 4, 4


def format_comparison(comparison: FabricComparison) -> str:
    """Return one line for a match, and one for each foreign line; else a paragraph for each repair, the worst first."""
    lines = [comparison.summary]
    lines += [f"  could not tell: {problem}" for problem in comparison.problems[:MAX_REPAIRS]]
    lines += [f"  note: {note}" for note in comparison.notes[:MAX_NOTES]]
    if len(comparison.notes) > MAX_NOTES:
        lines.append(f"  and {len(comparison.notes) - MAX_NOTES} more notes like these: --format json")
    repairs = group_by_common_cause(comparison.discrepancies)
    for repair in repairs[:MAX_REPAIRS]:
        lines += ["", *_format_repair(repair)]
    left = len(repairs) - MAX_REPAIRS
    if left > 0 or len(comparison.problems) > MAX_REPAIRS:
        lines += ["", f"and {max(left, 0)} more faults; all of them: --format json"]
    return "\n".join(lines)


def _format_repair(repair: CablingRepair) -> Iterator[str]:
    cost = measure_cost(repair.members)
    if repair.title:
        yield f"{cost.severity}: {repair.title}: {repair.likely_cause}; {cost}"
    members = drop_other_planes(repair.members)
    for member in members[:MAX_MEMBERS]:
        yield f"  {member.kind}: {member.summary}" if repair.title else f"{member.kind}: {member.summary}; {cost}"
        yield from (f"  → {step}" for step in member.steps)
    if len(members) > MAX_MEMBERS:
        yield f"  and {len(members) - MAX_MEMBERS} more like these: --format json"
