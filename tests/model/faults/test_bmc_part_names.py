"""The GPU that a BMC means is found by the serial number that both sides read; without it, nothing is guessed."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.model.evidence import EvidenceDocument
from assay.model.faults.bmc_events import lacks_host_serials, map_bmc_gpus, name_own_parts
from assay.model.faults.sightings import FaultSighting
from assay.model.reading import failed, unsupported, value

PARTS = {"0000:1b:00.0": "gpu0", "0000:43:00.0": "gpu1", "0000:52:00.0": "gpu2", "0000:18:00.0": "mlx5_0"}
HOST = {"0000:1B:00.0": "1650000000001", "0000:43:00.0": "1650000000002", "0000:52:00.0": "1650000000003"}
BMC = {"GPU_SXM_3": "1650000000001", "GPU_SXM_1": "1650000000002", "GPU_SXM_2": "1650000000003"}


def evidence(host: Any, bmc: Any) -> EvidenceDocument:
    def tell(serials: Any) -> Any:
        if not isinstance(serials, dict) or not all(isinstance(one, str) for one in serials.values()):
            return serials
        return {name: {"serial": value(serial)} for name, serial in serials.items()}

    tree = {"probe": {"gpu": {"devices": tell(host)}}, "bmc": {"processor": {"gpu": tell(bmc)}}}
    return EvidenceDocument("n1", datetime(2026, 11, 20, tzinfo=UTC), tree)


def test_names_are_joined_by_serial_number_in_whatever_order() -> None:
    found = map_bmc_gpus(evidence(HOST, BMC), PARTS)
    assert {name: part for name, part in found.items() if not name.startswith("HGX_")} == {
        "GPU_SXM_3": "gpu0",
        "GPU_SXM_1": "gpu1",
        "GPU_SXM_2": "gpu2",
    }
    assert found["HGX_GPU_SXM_3"] == "gpu0"


LAST_SEEN = {"1650000000001": "gpu0", "1650000000002": "gpu1", "1650000000003": "gpu2"}


def test_with_a_dead_host_a_gpu_is_where_its_serial_number_was_last_seen() -> None:
    silent = evidence(failed("no answer"), BMC)
    assert lacks_host_serials(silent)
    assert not lacks_host_serials(evidence(HOST, BMC))
    found = map_bmc_gpus(silent, PARTS, LAST_SEEN)
    assert (found["GPU_SXM_3"], found["GPU_SXM_1"], found["GPU_SXM_2"]) == ("gpu0", "gpu1", "gpu2")


def test_what_the_host_tells_now_overrides_where_a_serial_number_was_last_seen() -> None:
    moved = {"0000:1b:00.0": "1650000000002", "0000:43:00.0": "9"}  # 1 and 3 are not told; 2 moved to the place of 1
    found = map_bmc_gpus(evidence(moved, BMC), PARTS, LAST_SEEN)
    assert (found["GPU_SXM_1"], found["GPU_SXM_2"]) == ("gpu0", "gpu2")
    assert "GPU_SXM_3" not in found, "where it was last seen there is another one now"
    assert map_bmc_gpus(evidence({}, BMC), PARTS, {"1650000000001": "gpu7"}) == {}, "the spec has no such GPU"


def test_a_sighting_names_the_gpu_of_the_node_and_other_parts_stay_as_they_are() -> None:
    seen = FaultSighting("gpu.xid.79", "GPU_SXM_3", "", "", "sel", "")
    switch = seen._replace(part="NVSwitch_0")
    named = name_own_parts([seen, switch], map_bmc_gpus(evidence(HOST, BMC), PARTS), [])
    assert [one.part for one in named] == ["gpu0", "NVSwitch_0"]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("Sensor 'HGX_GPU_SXM_3_TEMP_0' reading of 93 is above the upper critical threshold", "gpu0"),
        ("GPU_SXM_1: power loss", "gpu1"),
        ("GPU_SXM_30_TEMP_0 is hot", ""),
        ("XGPU_SXM_1 is hot", ""),
        ("GPU_SXM_1 and GPU_SXM_2 are hot", ""),
        ("TEMP_CPU_0 is hot", ""),
    ],
)
def test_an_entry_of_the_node_that_names_one_gpu_is_about_that(text: str, part: str) -> None:
    gpus = map_bmc_gpus(evidence(HOST, BMC), PARTS)
    entry = FaultSighting("bmc.event.temperature", "", "", text, "sel log", "t1|1")
    assert [each.part for each in name_own_parts([entry], gpus, [])] == [part]
    counted: Any = SimpleNamespace(fault_class=entry.fault_class, subject="p/n1", marks={"sel log": "t1|1"})
    assert [each.part for each in name_own_parts([entry], gpus, [counted])] == [""], "its fault has counted it"
    of_another: Any = SimpleNamespace(fault_class=entry.fault_class, subject="p/n1/gpu9", marks={"sel log": "t2|2"})
    assert [each.part for each in name_own_parts([entry], gpus, [of_another])] == [part]


def test_an_entry_is_counted_once_whichever_name_came_first() -> None:
    entry = FaultSighting("gpu.xid.79", "GPU_SXM_3", "", "", "sel log", "t1|1")
    later = entry._replace(mark="t2|2")
    gpus = map_bmc_gpus(evidence(HOST, BMC), PARTS)
    by_bmcs_name: Any = SimpleNamespace(fault_class="gpu.xid.79", subject="p/n1/GPU_SXM_3", marks={"sel log": "t1|1"})
    named = name_own_parts([entry, later], gpus, [by_bmcs_name])
    assert [one.part for one in named] == ["GPU_SXM_3", "gpu0"], "the first adds nothing to its fault"
    by_own_name: Any = SimpleNamespace(fault_class="gpu.xid.79", subject="p/n1/gpu0", marks={"sel log": "t1|1"})
    assert list(name_own_parts([entry, later], {}, [by_own_name])) == [later]


def test_the_one_that_is_left_on_both_sides_is_the_lost_one() -> None:
    devices = {name: {"serial": value(serial)} for name, serial in HOST.items()}
    devices["0000:1B:00.0"] = failed("GPU is lost")  # type: ignore[assignment]
    assert map_bmc_gpus(evidence(devices, BMC), PARTS)["GPU_SXM_3"] == "gpu0"


@pytest.mark.parametrize(
    ("host", "bmc"),
    [
        ({}, BMC),
        (HOST, {}),
        (failed("no answer"), BMC),
        (HOST, unsupported("the system has no processors")),
        (dict.fromkeys(HOST, "0"), BMC),
        (HOST, dict.fromkeys(BMC, "1650000000001")),
        ({"0000:1b:00.0": "1650000000001"}, {"GPU_SXM_3": "9", "GPU_SXM_1": "8"}),
        ({"0000:99:00.0": "1650000000001"}, BMC),
    ],
)
def test_without_serial_numbers_of_their_own_positions_stay_unknown(host: Any, bmc: Any) -> None:
    assert map_bmc_gpus(evidence(host, bmc), PARTS) == {}


def test_two_lost_ones_are_not_told_apart() -> None:
    host = {"0000:1b:00.0": "1650000000001"}
    assert set(map_bmc_gpus(evidence(host, BMC), PARTS).values()) == {"gpu0"}


SERIALS = st.sampled_from(["a", "b", "c", "d", ""])


@given(
    st.dictionaries(st.sampled_from(list(PARTS)), SERIALS, max_size=4),
    st.dictionaries(st.sampled_from(["G1", "G2", "G3", "G4"]), SERIALS, max_size=4),
)
def test_two_names_never_mean_the_same_gpu_and_each_told_serial_is_that_gpus(
    host: dict[str, str], bmc: dict[str, str]
) -> None:
    found = {n: part for n, part in map_bmc_gpus(evidence(host, bmc), PARTS).items() if not n.startswith("HGX_")}
    assert len(set(found.values())) == len(found)
    serials = {PARTS[address]: serial for address, serial in host.items()}
    for name, part in found.items():
        assert serials.get(part) == bmc[name] or part in {"gpu0", "gpu1", "gpu2"} - {
            one for one, serial in serials.items() if serial in bmc.values()
        }


def test_a_uuid_names_the_gpu_that_has_it() -> None:
    devices = {
        "0000:1b:00.0": {"uuid": value("GPU-6463b098-ca8d-55c1-a65a-4d03c14fb86d")},
        "0000:43:00.0": {"uuid": failed("GPU is lost")},
    }
    assert map_bmc_gpus(evidence(devices, {}), PARTS) == {"6463b098-ca8d-55c1-a65a-4d03c14fb86d": "gpu0"}
