"""One physical event is one incident, whatever it shows itself by; two are two."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.decide.faults.incidents import Incident, list_incidents
from assay.decide.state.node_state import NodeState
from assay.model.faults.fault_record import FaultRecord
from assay.model.specs.fault_catalog import FaultCatalog
from assay.model.timestamps import format_time
from bench.incident_worlds import KINDS, make_world, score_world

START = datetime(2026, 11, 1, tzinfo=UTC)
NAMES = sorted(
    {name for kind in KINDS.values() for name, *_ in kind["shows"]} | {"site.own", "trend.heat", "gpu.xid.13"}
)


def make_fault(catalog: FaultCatalog, name: str, part: str, minutes: float, **more: object) -> FaultRecord:
    at, treatment = format_time(START + timedelta(minutes=minutes)), catalog.find_treatment(name)
    words = (treatment.severity, treatment.blame, treatment.remedy)
    ident = f"{name}@{part}@{minutes}"
    record = FaultRecord(ident, name, f"a/n1/{part}".rstrip("/"), *words, 1, at, at, "seen", arrived_at=at)
    return replace(record, **more)  # type: ignore[arg-type]


def list_of(catalog: FaultCatalog, *faults: FaultRecord) -> tuple[Incident, ...]:
    state = NodeState("n1", "a", "production", "", "", "", "", faults=faults, serial="S1")
    return list_incidents(catalog.fault_relations, state)


def name_classes(incidents: tuple[Incident, ...]) -> list[list[str]]:
    return [[symptom.fault_class for symptom in incident.symptoms] for incident in incidents]


def test_a_dead_gpu_is_one_incident_whose_cause_is_the_first_word_of_the_driver(catalog: FaultCatalog) -> None:
    dead = [("gpu.xid.79", "gpu4", 0), ("gpu.missing", "", 40), ("gpu.fabric", "gpu0", 40), ("bmc.unhealthy", "", 41)]
    (incident,) = list_of(catalog, *(make_fault(catalog, *each) for each in dead))
    assert (incident.cause.fault_class, incident.cause.part) == ("gpu.xid.79", "gpu4")
    assert incident.severity == "catastrophic"
    assert incident.serial == "S1"


def test_an_nvswitch_takes_the_links_of_all_gpus_with_it(catalog: FaultCatalog) -> None:
    links = [make_fault(catalog, "gpu.xid.74", f"gpu{number}", 1) for number in range(8)]
    assert len(list_of(catalog, make_fault(catalog, "nvswitch.sxid.fatal", "nvswitch1", 0), *links)) == 1


def test_a_power_supply_is_one_incident_though_the_bmc_told_first(catalog: FaultCatalog) -> None:
    told = [("bmc.event.power-supply", "", 0), ("bmc.unhealthy", "", 20), ("psu.failed", "psu3", 20)]
    (incident,) = list_of(catalog, *(make_fault(catalog, *each) for each in told))
    assert incident.cause.fault_class == "psu.failed"


def test_adapters_that_all_ask_for_more_power_are_one_incident(catalog: FaultCatalog) -> None:
    weak = [make_fault(catalog, "hca.power", f"mlx5_{number}", number / 100) for number in range(12)]
    assert len(list_of(catalog, *weak)) == 1


def test_another_machine_on_the_old_cables_is_one_incident(catalog: FaultCatalog) -> None:
    cables = [make_fault(catalog, "ib.cabling", f"mlx5_{rail}", 5) for rail in range(8)]
    (incident,) = list_of(catalog, *cables, make_fault(catalog, "identity.changed", "", 30))
    assert incident.cause.fault_class == "identity.changed"


def test_a_hot_room_is_one_incident_of_a_node_with_the_summary_of_its_bmc(catalog: FaultCatalog) -> None:
    told = make_fault(catalog, "bmc.unhealthy", "", 0, detail="TEMP_INLET 41 °C, its threshold is 40")
    (incident,) = list_of(catalog, told, make_fault(catalog, "inlet.out-of-range", "", 5))
    assert incident.cause.fault_class == "inlet.out-of-range"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("gpu.xid.79", "gpu3"), ("gpu.xid.79", "gpu6")),
        (("ib.link.flap", "mlx5_2"), ("ib.link.flap", "mlx5_5")),
        (("psu.failed", "psu1"), ("fan.failed", "fan1")),
        (("bmc.event.leak", ""), ("gpu.xid.79", "gpu4")),
        (("host.config.drift", ""), ("firmware.drift", "")),
        (("gpu.missing", "gpu1"), ("gpu.missing", "gpu6")),
        (("gpu.xid.79", "gpu3"), ("gpu.missing", "gpu6")),
        (("gpu.xid.79", "gpu3"), ("pcie.fatal", "gpu6")),
        (("psu.failed", "psu1"), ("psu.failed", "psu3")),
        (("gpu.thermal", "gpu1"), ("gpu.thermal", "gpu5")),
        (("fan.failed", "fan2"), ("gpu.thermal", "gpu5")),
        (("nvme.missing", "nvme1"), ("nvme.missing", "nvme5")),
        (("gpu.xid.74", "gpu1"), ("gpu.xid.74", "gpu6")),
        (("gpu.xid.79", "gpu3"), ("gpu.xid.74", "gpu6")),
        (("gpu.missing", "gpu3"), ("gpu.nvlink.down", "gpu6")),
    ],
)
def test_two_independent_faults_planted_together_stay_two(
    catalog: FaultCatalog, first: tuple[str, str], second: tuple[str, str]
) -> None:
    assert len(list_of(catalog, make_fault(catalog, *first, 0), make_fault(catalog, *second, 1))) == 2


@pytest.mark.parametrize(("name", "part", "least"), [("psu.failed", "psu", 3), ("gpu.thermal", "gpu", 4)])
def test_what_many_parts_of_a_kind_share_is_one_incident(
    catalog: FaultCatalog, name: str, part: str, least: int
) -> None:
    many = [make_fault(catalog, name, f"{part}{number}", number) for number in range(least)]
    assert len(list_of(catalog, *many)) == 1
    assert len(list_of(catalog, *many[:-1])) == least - 1


def test_a_check_of_the_node_that_names_another_part_is_another_incident(catalog: FaultCatalog) -> None:
    gone = make_fault(catalog, "gpu.missing", "", 5, detail="7 of 8 GPUs answer: gpu6 is missing")
    assert len(list_of(catalog, make_fault(catalog, "gpu.xid.79", "gpu6", 0), gone)) == 1
    assert len(list_of(catalog, make_fault(catalog, "gpu.xid.79", "gpu3", 0), gone)) == 2


def test_what_a_cause_does_to_the_whole_node_is_its_own(catalog: FaultCatalog) -> None:
    braked = [make_fault(catalog, "gpu.power-brake", f"gpu{number}", 1) for number in range(8)]
    assert len(list_of(catalog, make_fault(catalog, "psu.failed", "psu1", 0), *braked)) == 1


def test_two_events_of_one_part_months_apart_know_each_other(catalog: FaultCatalog) -> None:
    ended = format_time(START + timedelta(hours=1))
    first = make_fault(catalog, "gpu.xid.79", "gpu4", 0, cleared_at=ended)
    again = make_fault(catalog, "gpu.xid.79", "gpu4", 60 * 24 * 60)
    earlier, later = list_of(catalog, first, again)
    assert later.earlier == (earlier.id,)
    assert (earlier.is_open, later.is_open) == (False, True)


def test_a_cause_that_ended_long_before_takes_in_nothing(catalog: FaultCatalog) -> None:
    ended = format_time(START + timedelta(hours=1))
    first = make_fault(catalog, "gpu.xid.79", "gpu4", 0, cleared_at=ended)
    assert len(list_of(catalog, first, make_fault(catalog, "gpu.missing", "", 60 * 24 * 9))) == 2


FAULTS = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(["", "gpu1", "gpu2", "mlx5_1", "psu1"]), st.integers(0, 600)),
    max_size=25,
    unique=True,
)


@settings(max_examples=150, deadline=None)
@given(kinds=FAULTS, seed=st.integers(0, 9), ended=st.sets(st.integers(0, 24)))
def test_each_fault_is_in_one_incident_in_whatever_order_it_is_known(
    catalog: FaultCatalog, kinds: list[tuple[str, str, int]], seed: int, ended: set[int]
) -> None:
    at = format_time(START + timedelta(hours=11))
    faults = [make_fault(catalog, *each, **({"cleared_at": at} if n in ended else {})) for n, each in enumerate(kinds)]
    incidents = list_of(catalog, *faults)
    members = [symptom.id for incident in incidents for symptom in incident.symptoms]
    assert sorted(members) == sorted(fault.id for fault in faults)
    random.Random(seed).shuffle(faults)
    assert list_of(catalog, *faults) == incidents


@settings(max_examples=100, deadline=None)
@given(kinds=FAULTS)
def test_what_comes_later_changes_no_name(catalog: FaultCatalog, kinds: list[tuple[str, str, int]]) -> None:
    """An incident may take in another one: then it has the name of the older."""
    faults = sorted((make_fault(catalog, *each) for each in kinds), key=lambda fault: (fault.arrived_at, fault.id))
    before = {s.id: incident.id for incident in list_of(catalog, *faults[:-1]) for s in incident.symptoms}
    after = {s.id: incident.id for incident in list_of(catalog, *faults) for s in incident.symptoms}
    firsts = {incident.id for incident in list_of(catalog, *faults)}
    assert all(after[ident] in before.values() for ident in before)
    assert firsts <= {*before.values(), *(after[fault.id] for fault in faults[-1:])}


@pytest.mark.parametrize("apart", [True, False])
def test_worlds_with_known_causes(catalog: FaultCatalog, *, apart: bool) -> None:
    """Causes alike on other parts of a node stay apart, hours from each other and at once."""
    scores = [score_world(catalog, make_world(catalog, seed, 400, apart=apart)) for seed in range(100, 105)]
    causes = sum(score.causes for score in scores)
    assert sum(score.exact for score in scores) >= 0.98 * causes
    assert sum(score.merged for score in scores) <= 0.01 * causes
    assert abs(sum(score.incidents for score in scores) - causes) <= 0.01 * causes


def test_a_world_has_causes_alike_on_other_parts_of_a_node(catalog: FaultCatalog) -> None:
    faults = [state.faults for state in make_world(catalog, 1, 400).states]
    assert any(len({fault.subject for fault in each if fault.fault_class == "psu.failed"}) > 1 for each in faults)


def test_a_sensor_of_the_bmc_follows_from_the_gpu_that_it_names(catalog: FaultCatalog) -> None:
    hot = make_fault(catalog, "gpu.thermal", "gpu2", 5)
    told = make_fault(catalog, "bmc.unhealthy", "", 5, detail="HGX_GPU_SXM_3_TEMP_0 (gpu2) 93 °C, its threshold is 85")
    assert name_classes(list_of(catalog, hot, told)) == [["gpu.thermal", "bmc.unhealthy"]]
    for detail in ("HGX_GPU_SXM_4_TEMP_0 (gpu3) 93 °C", "TEMP_CPU_0 97 °C", "gpu20 and gpu1", ""):
        assert len(list_of(catalog, hot, replace(told, detail=detail))) == 2, detail
    event = make_fault(catalog, "bmc.event.temperature", "gpu2", 8)
    assert len(list_of(catalog, hot, event)) == 1
    assert len(list_of(catalog, hot, replace(event, subject="a/n1/gpu5"))) == 2


@pytest.mark.parametrize("later", [("gpu.xid.79", "gpu4", 45), ("gpu.missing", "gpu4", 600), ("gpu.missing", "", 600)])
def test_what_comes_after_a_proved_repair_is_another_incident(
    catalog: FaultCatalog, later: tuple[str, str, float]
) -> None:
    over = format_time(START + timedelta(minutes=40))
    first = make_fault(catalog, "gpu.xid.79", "gpu4", 0, cleared_at=over, response="acted")
    former, again = list_of(catalog, first, make_fault(catalog, *later))
    assert (again.earlier, again.first, again.former_end) == ((former.id,), former.id, over)
    assert again.describe_return() in (", again, 5 min after it was over", ", again, 9 h after it was over")
    assert former.describe_return() == ""
    unproved = replace(first, response="")
    assert len(list_of(catalog, unproved, make_fault(catalog, *later))) == 1


@pytest.mark.parametrize(("seen", "count"), [(45, 1), (2000, 2)])
def test_what_is_seen_again_long_after_a_proved_repair_was_no_consequence(
    catalog: FaultCatalog, seen: float, count: int
) -> None:
    over, again = (format_time(START + timedelta(minutes=minutes)) for minutes in (40, seen))
    cause = make_fault(catalog, "gpu.xid.79", "gpu4", 0, cleared_at=over, response="acted")
    symptom = make_fault(catalog, "gpu.missing", "gpu4", 5, last_seen=again)
    incidents = list_of(catalog, cause, symptom)
    assert len(incidents) == count
    assert [(each.split_from, each.earlier) for each in incidents[1:]] == [(incidents[0].id, ())] * (count - 1)
    assert len(list_of(catalog, replace(cause, response=""), symptom)) == 1, "nothing proved a repair"


def test_a_check_of_the_node_that_names_one_part_is_about_that(catalog: FaultCatalog) -> None:
    def name(detail: str, part: str = "") -> str:
        (incident,) = list_of(catalog, make_fault(catalog, "psu.failed", part, 0, detail=detail))
        return incident.work.named_part

    assert [name("psu3 has LossOfInput"), name("psu3 has X, psu4 has X"), name("group 0 is Critical")] == [
        "psu3",
        "",
        "",
    ]
    assert name("psu3 has LossOfInput", "psu5") == "psu5"


def test_what_wears_in_one_part_is_one_incident_and_in_two_parts_two(catalog: FaultCatalog) -> None:
    warm, weak = make_fault(catalog, "trend.heat", "gpu2", 0), make_fault(catalog, "trend.memory", "gpu2", 9000)
    other = make_fault(catalog, "trend.heat", "gpu3", 9000)
    assert sorted(map(len, name_classes(list_of(catalog, warm, weak, other)))) == [1, 2]
