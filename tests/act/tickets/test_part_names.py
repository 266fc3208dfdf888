"""A part has our name on every surface, with the names that a technician reads on the hardware beside it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from assay.act.tickets.part_names import PartNames
from assay.decide.state.node_state import NodeState
from assay.declare.loader import load_fleet
from assay.model.evidence import EvidenceDocument
from assay.model.reading import value
from assay.observe.evidence_store import EvidenceStore
from tests.support.places import ROOT

STATE = NodeState("n0003", "h100-a", "production", "", "", "", "", gpus={"gpu4": ("1654", "")})


def test_a_gpu_has_its_bmc_name_and_its_serial_number(tmp_path: Path) -> None:
    names = PartNames(load_fleet(ROOT), EvidenceStore(tmp_path))
    assert names.describe(STATE, "gpu4") == "gpu4 (serial 1654)"
    bmc = {"processor": {"gpu": {"GPU_SXM_5": {"serial": value("1654")}}}}
    EvidenceStore(tmp_path).store_latest(EvidenceDocument("n0003", datetime(2026, 11, 20, tzinfo=UTC), {"bmc": bmc}))
    assert PartNames(load_fleet(ROOT), EvidenceStore(tmp_path)).describe(STATE, "gpu4") == (
        "gpu4 (GPU_SXM_5, serial 1654)"
    )


def test_a_gpu_that_came_after_a_fault_is_not_the_one_that_failed(tmp_path: Path) -> None:
    names = PartNames(load_fleet(ROOT), EvidenceStore(tmp_path))
    state = replace(STATE, exchanged={"gpu4": "2026-12-03T12:30:00+00:00"})
    told = [names.describe(state, "gpu4", seen) for seen in ("2026-12-03T09:00:00+00:00", "2026-12-03T13:00:00+00:00")]
    assert told == ["gpu4 (serial 1654, new since 2026-12-03 12:30 UTC)", "gpu4 (serial 1654)"]


def test_an_adapter_has_the_other_end_of_its_cable(tmp_path: Path) -> None:
    names = PartNames(load_fleet(ROOT), EvidenceStore(tmp_path))
    assert names.describe(STATE, "mlx5_0") == "mlx5_0 (cable to leaf-su01-r0 port 3 in lab1 r06 U30, label 2/1)"
    place = names.find_far_end("n0003", "mlx5_1")
    assert place is not None
    assert (place.device, place.rack, place.u, place.label) == ("leaf-su01-r1", "r06", 32, "2/1")


def test_what_nobody_knows_keeps_its_name(tmp_path: Path) -> None:
    names = PartNames(load_fleet(ROOT), EvidenceStore(tmp_path))
    assert [names.describe(STATE, part) for part in ("psu3", "gpu0", "mlx5_99")] == ["psu3", "gpu0", "mlx5_99"]
    gone = NodeState("n9999", "h100-a", "production", "", "", "", "")
    assert names.describe(gone, "gpu4") == "gpu4"
