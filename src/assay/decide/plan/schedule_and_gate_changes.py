"""Says of changed schedules what runs more or less often, and of changed gates whether they become looser."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from assay.decide.plan.fleet_revision import FleetRevision, find_spec_line
from assay.decide.plan.other_change import OtherChange, select_pools
from assay.decide.plan.policy_changes import UNCOMPARED_FIELDS, compare_values
from assay.model.specs.check_catalog_and_gates import ANY_POOL, Gates, PoolGate
from assay.model.specs.schedules import FleetSchedule, find_next_slot

COUNTED_SLOTS = 60
"""How many runs of a cron decide how often it runs: a day of one that runs each 24 min, a year of a weekly one."""
COUNTED_FROM = datetime(2026, 1, 5, tzinfo=UTC)
ALIKE = 0.02  # relative: months and clock changes make two equal crons differ by less
TIME_FIELDS = {"cron", "every_minutes"}


def list_schedule_changes(before: FleetRevision, after: FleetRevision) -> Iterator[OtherChange]:
    """Yield what runs from the merge on, no longer, more often, less often, or otherwise."""
    was, will = dict(_list_schedules(before)), dict(_list_schedules(after))
    for key in sorted(was.keys() | will.keys()):
        old, new = was.get(key), will.get(key)
        if old == new:
            continue
        pools = select_pools(after, () if _is_for_all(old) or _is_for_all(new) else [*_pools(old), *_pools(new)])
        line = find_spec_line(after.fleet, f"Schedules/{key[0]}", f"schedules.{key[1]}")
        for what, weakens in _describe_schedule(after, key, old, new):
            yield OtherChange("schedule", f"schedule {key[1]}: {what}", line, pools, weakens)


def _list_schedules(revision: FleetRevision) -> Iterator[tuple[tuple[str, str], tuple[FleetSchedule, str]]]:
    for document in revision.fleet.schedules.values():
        for name, schedule in document.schedules.items():
            yield (document.name, name), (schedule, schedule.time_zone or document.time_zone)


def _pools(found: tuple[FleetSchedule, str] | None) -> list[str]:
    return found[0].pools if found else []


def _is_for_all(found: tuple[FleetSchedule, str] | None) -> bool:
    return found is not None and not found[0].pools


def _describe_schedule(
    after: FleetRevision,
    key: tuple[str, str],
    old: tuple[FleetSchedule, str] | None,
    new: tuple[FleetSchedule, str] | None,
) -> Iterator[tuple[str, bool]]:
    """Yield each sentence about one schedule, and whether less is looked at from the merge on."""
    if old is None or new is None:
        if one := old or new:
            yield f"{one[0].does} {'begins to run' if new else 'no longer runs'} {_time(*one)}", new is None
        return
    if _time(*old) != _time(*new):
        often = _compare_times(old, new)
        yield f"{new[0].does} runs {_time(*new)} instead of {_time(*old)}: {often}", often == "less often"
    document = f"Schedules/{key[0]}"
    for found in compare_values(after, old[0], new[0], document, {*UNCOMPARED_FIELDS, *TIME_FIELDS, "time_zone"}):
        yield f"{found.path} {found.old or 'none'} → {found.new or 'none'}", False


def _time(schedule: FleetSchedule, zone: str) -> str:
    if schedule.every_minutes is not None:
        return f"every {schedule.every_minutes} min"
    return f"at `{schedule.cron}` ({zone})"


def _compare_times(old: tuple[FleetSchedule, str], new: tuple[FleetSchedule, str]) -> str:
    was, will = _interval(*old), _interval(*new)
    if was is None or will is None:
        return "at other times"
    if abs(was - will) <= ALIKE * was:
        return "as often, at other times"
    return "more often" if will < was else "less often"


def _interval(schedule: FleetSchedule, zone: str) -> timedelta | None:
    """Return the mean time between two runs, None for a cron that never runs."""
    if schedule.every_minutes is not None:
        return timedelta(minutes=schedule.every_minutes)
    first = at = find_next_slot(schedule, zone, COUNTED_FROM)
    for _ in range(COUNTED_SLOTS):
        at = find_next_slot(schedule, zone, at) if at else None
    return (at - first) / COUNTED_SLOTS if at and first else None


def list_gate_changes(before: FleetRevision, after: FleetRevision) -> Iterator[OtherChange]:
    """Yield each bound of a gate that becomes looser or stricter."""
    was, will = before.fleet.gates, after.fleet.gates
    for name in sorted(was.keys() | will.keys()):
        old, new = dict(_list_bounds(was.get(name))), dict(_list_bounds(will.get(name)))
        for path in dict.fromkeys([*old, *new]):
            if old.get(path) != new.get(path):
                yield _compare_bound(after, name, path, old.get(path), new.get(path))


def _list_bounds(gates: Gates | None) -> Iterator[tuple[str, float]]:
    if gates is None:
        return
    for pool, gate in gates.pools.items():
        for field in PoolGate.model_fields:
            if (value := getattr(gate, field)) is not None:
                yield f"pools.{pool}.{field}", value
    if gates.new_failures is not None:
        yield "new_failures", gates.new_failures


def _compare_bound(after: FleetRevision, name: str, path: str, old: float | None, new: float | None) -> OtherChange:
    is_looser = new is None or (old is not None and (new < old) == path.endswith("success_percent"))
    said = "looser" if is_looser else "stricter"
    was, will = ("none" if value is None else f"{value:g}" for value in (old, new))
    pool = path.split(".")[1] if path.startswith("pools.") else ANY_POOL
    pools = select_pools(after, () if pool == ANY_POOL else [pool])
    change = OtherChange("gate", f"gate {name}: {path} {was} → {will}: {said}", "", pools, is_looser)
    return replace(change, line=find_spec_line(after.fleet, f"Gates/{name}", path))
