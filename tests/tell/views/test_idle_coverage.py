"""The coverage of the GPUs in service, by part and age."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta

import pytest

from assay.decide.state.load_coverage import UNIT_PART, GpuCoverage, PartCoverage
from assay.decide.state.node_state import NodeState
from assay.declare.loader import load_fleet
from assay.model.fleet import Fleet
from assay.model.timestamps import format_time
from assay.tell.views.idle_coverage import EVERY_UNIT, NEVER, PartAges, list_idle_coverage
from tests.support.places import ROOT

NOW = datetime(2026, 11, 30, tzinfo=UTC)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    root = tmp_path_factory.mktemp("fleet")
    for part in ("inventory", "specs"):
        shutil.copytree(ROOT / part, root / part)
    file = root / "inventory/h100-a.yml"
    file.write_text(file.read_text().replace("workloads: none", "workloads: slurm"))
    return load_fleet(root)


def ago(days: float) -> str:
    return format_time(NOW - timedelta(days=days))


def read_ages(fleet: Fleet, covered: dict[str, GpuCoverage], served_days: float) -> dict[str, PartAges]:
    node = fleet.nodes_in_pool("h100-a")[0]
    since = ago(served_days)
    state = NodeState(node.name, "h100-a", "production", since, stay_id="", reason="", enrolled_at=since)
    (pool,) = list_idle_coverage(fleet, {node.name: state}, covered, NOW)
    assert (pool.pool, pool.gpus) == ("h100-a", 8)
    return {part.part: part for part in pool.parts}


def test_gpus_are_counted_by_the_age_of_what_covered_them(fleet: Fleet) -> None:
    node = fleet.nodes_in_pool("h100-a")[0].name
    whole = PartCoverage(covered_at=ago(0.5), every_unit_at=ago(9))
    covered = {
        "A1": GpuCoverage("A1", node, {UNIT_PART: whole, "memory": PartCoverage(covered_at=ago(6))}),
        "A2": GpuCoverage("A2", node, {UNIT_PART: PartCoverage(covered_at=ago(40))}),
    }
    parts = read_ages(fleet, covered, served_days=30)
    assert (parts[UNIT_PART].gpus["1 day"], parts[UNIT_PART].gpus["older"], parts[UNIT_PART].gpus[NEVER]) == (1, 1, 6)
    assert (parts["memory"].gpus["7 days"], parts["memory"].late) == (1, 7)
    assert (parts[EVERY_UNIT].gpus["28 days"], parts[EVERY_UNIT].late) == (1, 8)
    assert parts[EVERY_UNIT].late_nodes == (node,)
    assert all(sum(part.gpus.values()) == 8 for part in parts.values())


def test_a_gpu_is_late_only_after_its_node_has_served_so_long(fleet: Fleet) -> None:
    assert {part.late for part in read_ages(fleet, {}, served_days=6.9).values()} == {0}
    assert {part.late for part in read_ages(fleet, {}, served_days=7.1).values()} == {8}
