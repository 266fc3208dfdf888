"""Which parts of a load a visit runs: no part starves, and what was cut short goes before what was done."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from assay.decide.state.load_coverage import COVERAGE, UNIT_PART, GpuCoverage, VisitPlan, name_gpus, plan_visit
from assay.declare.loader import load_fleet
from assay.model.entries.schedule_entries import NodeLoadedEntry
from assay.model.ledger_entry import LedgerEntry
from tests.support.places import ROOT

SECONDS = {"all_reduce": 60.0, "gpu_burn": 120.0, "nvme_read": 10.0, "memory": 60.0, UNIT_PART: 180.0}
BEGIN = datetime(2026, 11, 23, tzinfo=UTC)
GPUS = ("A1", "A2")


class History:
    """The visits to one node, and what is planned next."""

    def __init__(self, gpus: tuple[str, ...] = GPUS) -> None:
        self.entries: list[LedgerEntry] = []
        self.gpus = gpus

    def coverage(self) -> list[GpuCoverage]:
        found = COVERAGE.fold(self.entries)
        return [found.get(serial) or GpuCoverage(serial) for serial in name_gpus("n1", self.gpus)]

    def plan(self, budget_s: float | None = 300, seeds: int = 1000) -> VisitPlan:
        return plan_visit(SECONDS, budget_s, self.coverage(), seeds)

    def visit(self, parts: dict[str, dict[str, Any]], gpus: tuple[str, ...] = ()) -> None:
        at = (BEGIN + timedelta(hours=len(self.entries))).isoformat()
        visit = NodeLoadedEntry("idle", at, gpus or self.gpus, parts)
        self.entries.append(visit.make_entry(at, at, "n1"))

    def run(self, plan: VisitPlan, lasts_s: float) -> None:
        """Run a plan until a customer comes after `lasts_s`."""
        parts: dict[str, dict[str, Any]] = {}
        left_s = lasts_s
        for part in plan.parts:
            if left_s <= 0:
                break
            units = {"units": int(min(left_s, SECONDS[part]))} if part == UNIT_PART else {}
            parts[part] = {"ended": "done" if left_s >= SECONDS[part] else "cut", **units}
            left_s -= SECONDS[part]
        self.visit(parts)


@given(st.lists(st.floats(1, 400), min_size=40, max_size=60), st.sampled_from([None, 1.0, 200.0, 300.0, 600.0]))
def test_every_part_is_started_again_and_again_however_short_the_visits_are(lasts: list[float], budget: float | None):
    history = History()
    for lasts_s in lasts:
        history.run(history.plan(budget), lasts_s)
    started = [set(entry.body["parts"]) for entry in history.entries]
    for begin in range(len(started) - len(SECONDS)):
        assert set().union(*started[begin : begin + len(SECONDS)]) == set(SECONDS), "a round of visits leaves none out"


@given(st.lists(st.floats(1, 700), min_size=1, max_size=12))
def test_what_a_visit_did_is_not_repeated_before_what_it_did_not_reach(lasts: list[float]):
    history = History()
    for lasts_s in lasts:
        before = history.plan(None)
        history.run(before, lasts_s)
        order = history.plan(None).parts
        did = history.entries[-1].body["parts"]
        covered = {part for part, told in did.items() if told["ended"] == "done" or told.get("units")}
        places = {part: place for place, part in enumerate(order)}
        left = [places[part] for part in SECONDS if part not in covered]
        assert not left or not covered or max(left) < min(places[part] for part in covered)


def test_a_visit_fits_its_budget_but_always_runs_one_part():
    history = History()
    assert history.plan(130).parts == ("all_reduce", "nvme_read", "memory")
    assert history.plan(5).parts == ("all_reduce",)
    assert set(history.plan(None).parts) == set(SECONDS)


def test_units_before_a_kill_cover_the_battery_and_it_goes_on_behind_them():
    history = History()
    history.visit({UNIT_PART: {"ended": "cut", "units": 5, "tests": {"sort": 5}, "last_unit": "4:sort"}})
    assert history.plan(None).parts[-1] == UNIT_PART
    assert history.plan().after_unit == "4:sort"
    [first, _] = history.coverage()
    assert (first.find(UNIT_PART).units, first.find(UNIT_PART).tests) == (5, {"sort": 5})


def test_after_the_last_seed_the_battery_begins_again():
    history = History()
    history.visit({UNIT_PART: {"ended": "done", "units": 9, "last_unit": "1000:sort"}})
    assert history.plan(seeds=1000).after_unit == ""


def test_a_new_gpu_has_no_coverage_and_decides_what_its_node_runs():
    history = History()
    for _ in range(3):
        history.run(history.plan(None), 10_000)
    history.visit({"memory": {"ended": "done"}, UNIT_PART: {"ended": "done", "units": 7, "last_unit": "6:sort"}})
    history.gpus = ("A1", "NEW")
    plan = history.plan(None)
    assert plan.parts == tuple(SECONDS), "to the new one, nothing was done yet"
    assert plan.after_unit == "", "its battery begins with the first unit"
    assert history.coverage()[0].find("memory").visits == 4, "the other one keeps what it has"


def test_a_part_that_the_node_lacks_something_for_has_its_turn_but_covers_nothing():
    history = History()
    history.visit({UNIT_PART: {"ended": "lacking"}})
    covered = history.coverage()[0].find(UNIT_PART)
    assert (covered.covered_at, covered.lacking, covered.visits) == ("", 1, 0)
    assert history.plan(None).parts[-1] == UNIT_PART


def test_where_no_serial_number_was_read_the_node_is_covered_instead():
    history = History(gpus=())
    history.visit({"memory": {"ended": "done"}})
    [only] = history.coverage()
    assert (only.serial, only.find("memory").visits) == ("unknown serials of n1", 1)


@given(st.lists(st.floats(1, 400), max_size=12), st.integers(0, 12))
def test_coverage_that_is_read_bit_by_bit_is_the_same(lasts: list[float], cut: int):
    history = History()
    for lasts_s in lasts:
        history.run(history.plan(), lasts_s)
    known = COVERAGE.fold(history.entries[:cut])
    assert COVERAGE.fold(history.entries[cut:], known) == COVERAGE.fold(history.entries)


def battery(after: str, last_unit: str, seeds: int = 4) -> dict[str, dict[str, Any]]:
    return {UNIT_PART: {"ended": "cut", "units": 5, "after": after, "last_unit": last_unit, "seeds": seeds}}


def test_every_unit_was_met_when_no_visit_left_one_out() -> None:
    history = History(("A1",))
    met = []
    for after, last in (("", "1:sum"), ("1:sum", "3:sort"), ("3:sort", "4:sum"), ("", "2:sum"), ("2:sum", "9:sum")):
        history.visit(battery(after, last))
        (gpu,) = history.coverage()
        met.append(gpu.find(UNIT_PART).every_unit_at)
    third, fifth = ((BEGIN + timedelta(hours=hour)).isoformat() for hour in (2, 4))
    assert met == ["", "", third, third, fifth], "seeds 0 to 3 are all; seed 4 has begun"


def test_a_gpu_from_another_node_has_not_met_what_its_neighbours_computed_before() -> None:
    history = History(("A1",))
    history.visit(battery("", "1:sum"))
    history.visit(battery("1:sum", "3:sum"), ("A1", "B9"))
    history.visit(battery("3:sum", "5:sum"), ("A1", "B9"))
    known = COVERAGE.fold(history.entries)
    assert known["A1"].find(UNIT_PART).every_unit_at
    assert known["B9"].find(UNIT_PART).every_unit_at == ""


def test_visits_of_earlier_versions_say_nothing_about_every_unit() -> None:
    history = History(("A1",))
    history.visit({UNIT_PART: {"ended": "done", "units": 5, "last_unit": "4:sum"}})
    assert history.coverage()[0].find(UNIT_PART).every_unit_at == ""


def test_the_shipped_schedule_meets_every_unit_within_its_days() -> None:
    """Even if a visit computes one seed only, and a node is idle in half of the hours."""
    how = load_fleet(ROOT).schedules["default"].schedules["idle-verification"].verification
    assert how is not None
    assert sum(how.seconds_by_part.values()) <= (how.budget_minutes or 0) * 60 <= 20 * 60 < how.within_minutes * 60
    assert sum(how.seconds_by_part.values()) >= 15 * 60, "all parts run in each visit"
    history = History(("A1",))
    for _ in range(int(how.cover_days * 24 / 2)):
        after = history.plan(None, how.seeds).after_unit
        last = f"{int(after.partition(':')[0]) + 1 if after else 0}:sum"
        history.visit(battery(after, last, how.seeds))
    assert history.coverage()[0].find(UNIT_PART).every_unit_at
