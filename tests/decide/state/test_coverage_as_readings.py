"""What visits covered, as the readings that checks judge: ages by serial number, and units over all visits."""

from __future__ import annotations

from datetime import UTC, datetime

from assay.decide.state.load_coverage import COVERAGE, GpuCoverage, describe_coverage
from assay.model.entries.schedule_entries import NodeLoadedEntry

SINCE, NOW = datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 23, 12, tzinfo=UTC)


def visit(day: int, units: int, ended: str = "done") -> NodeLoadedEntry:
    return NodeLoadedEntry(
        "idle", f"2026-11-{day}T12:00:00+00:00", ("A1",), {"battery": {"ended": ended, "units": units}}
    )


def test_ages_count_from_the_newest_visit_and_units_are_summed_also_over_visits_cut_short() -> None:
    visits = [visit(20, 43), visit(21, 17, "cut"), visit(22, 0, "lacking")]
    covered = COVERAGE.fold([one.make_entry(str(n), one.slot, "n1") for n, one in enumerate(visits)])
    (gpu,) = describe_coverage({"gpu3": covered["A1"]}, ["battery"], SINCE, NOW).items()
    assert gpu == (
        "gpu3",
        {
            "serial": {"value": "A1"},
            "parts": {
                "battery": {
                    "age_hours": {"value": 48.0},
                    "seen": {"value": True},
                    "visits": {"value": 1},
                    "units": {"value": 60},
                }
            },
        },
    )


def test_what_never_covered_a_gpu_is_as_old_as_the_service_of_its_node() -> None:
    part = describe_coverage({"gpu3": GpuCoverage("new")}, ["memory"], SINCE, NOW)["gpu3"]["parts"]["memory"]
    assert part == {"age_hours": {"value": 540.0}, "seen": {"value": False}, "visits": {"value": 0}}
