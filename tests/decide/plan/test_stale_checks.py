"""A pass stops counting when what it was judged by is said otherwise, and no sooner."""

from __future__ import annotations

import pytest

from assay.decide.plan.inputs import FleetRevision
from assay.model.specs.check_catalog import CheckDeclaration


def stale(repository) -> dict[str, tuple[str, ...]]:
    """Return the stale checks with their reasons, over all nodes."""
    found = {}
    for rerun in repository.plan().reruns:
        found.update({check.rpartition("::")[2]: reasons for check, reasons in rerun.because.items()})
    return found


def find_due(revision: FleetRevision) -> list[CheckDeclaration]:
    """Return the checks for which node n0005 has all parts."""
    parts = revision.fleet.parts_of("n0005")
    return [check for check in revision.checks.values() if not check.find_lacking(parts)]


BATTERY = (
    "test_gpu_computes_as_its_peers",
    "test_nothing_is_wrong_that_several_parts_explain",
    "test_gpu_gives_every_result",
    "test_enough_units_ran",
    "test_gpus_compute_alike_fast",
    "test_node_agrees_with_golden_digests",
)
TRAINING = (
    "test_gpu_trains_as_its_peers",
    "test_gpu_trains_as_golden",
    "test_training_ends_well",
    "test_gpus_train_alike_fast",
    "test_gpu_trains_as_fast_as_the_fleet",
    "test_gpu_holds_the_state_in_data_parallel",
    "test_gpu_trains_as_golden_in_data_parallel",
    "test_data_parallel_ends_well",
    "test_data_parallel_as_fast_as_the_fleet",
    "test_gpu_holds_the_state_in_tensor_parallel",
    "test_gpu_trains_as_golden_in_tensor_parallel",
    "test_tensor_parallel_ends_well",
    "test_tensor_parallel_as_fast_as_the_fleet",
)
"""Checks that are judged by golden digests, of those that are due here; those for another GPU are others."""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("gpu_temperature: {value: 85", "gpu_temperature: {value: 84", {"test_gpu_temperature"}),
        ("driver: 570", "driver: 580", {"test_driver_version"}),
        ("model: NVIDIA H100", "model: NVIDIA H200", {"test_gpu_model", *BATTERY, *TRAINING}),
        ("memory_gib: 2048", "memory_gib: 1024", {"test_memory_size", "test_memory_is_all_there"}),
        ("psus: {count: 6, needed: 4}", "psus: {count: 6, needed: 5}", {"test_enough_power_supplies"}),
        ("source: NVIDIA ConnectX-7 datasheet", "source: another page of the datasheet", set()),
        ("description: Eight", "description: 8", set()),
    ],
)
def test_only_checks_that_read_what_changed_are_stale(repository, old, new, expected) -> None:
    assert set(stale(repository.spec(old, new))) == expected


def test_a_check_is_not_to_be_run_again_where_a_node_lacks_what_it_needs(repository) -> None:
    catalogue = (repository.root / "specs/checks/checks.yaml").read_text()
    start = catalogue.index("  - id: suites/production/test_gpu.py::test_gpu_temperature")
    entry = catalogue[start : catalogue.index("  - id: ", start + 1)]
    repository.edit("specs/checks/checks.yaml", entry, entry.replace("needs: [gpus]", "needs: [amd]")).commit()
    assert stale(repository.spec("gpu_temperature: {value: 85", "gpu_temperature: {value: 84")) == {}


def test_other_golden_digests_make_the_checks_stale_that_compare_with_them(repository) -> None:
    golden = "specs/golden/lab-h100.yaml"
    assert stale(repository.edit(golden, "eb72a842", "eb72a843")) == dict.fromkeys(BATTERY, ("golden digests",))
    repository.edit(golden, "eb72a843", "eb72a842")
    assert stale(repository.edit(golden, "sources: [", 'sources: ["another page", ')) == {}


def test_other_golden_digests_of_training_leave_the_battery_alone(repository) -> None:
    found = stale(repository.edit("specs/golden/lab-h100-gpt.yaml", "216fff7d", "216fff7e"))
    assert found == dict.fromkeys(TRAINING, ("golden digests",))


def test_slots_are_what_every_check_of_the_part_rests_on(repository) -> None:
    found = stale(repository.spec('"0000:df:00.0"', '"0000:e0:00.0"'))
    due = find_due(repository.declared())
    assert {check.id.rpartition("::")[2] for check in due if check.subject == "gpu"} <= set(found)
    assert "test_cpus" not in found


def test_a_check_is_stale_where_its_source_means_something_else(repository) -> None:
    repository.edit("suites/zap/test_firmware.py", "!= component.version\n", "is not component.version\n")
    assert stale(repository) == dict.fromkeys(
        ("test_firmware_is_the_bundles", "test_hca_firmware_is_the_bundles"), ("written otherwise",)
    )


def test_a_docstring_is_no_source(repository) -> None:
    repository.edit("suites/zap/test_firmware.py", "Compare the firmware of every", "Hold the firmware of every")
    assert stale(repository) == {}


def test_a_check_is_stale_where_the_catalogue_declares_it_otherwise_or_newly(repository) -> None:
    catalogue = "specs/checks/checks.yaml"
    text = (repository.root / catalogue).read_text()
    start = text.index("  - id: suites/seatrial/test_storage.py::test_drive_size")
    entry = text[start : text.index("  # ", start)]
    repository.edit(catalogue, entry, "").commit()
    repository.edit(catalogue, "fault: collective.slow", "fault: collective.wrong")
    repository.edit(catalogue, "checks:\n", f"checks:\n{entry}")
    assert stale(repository) == {
        "test_all_reduce_bandwidth": ("declared otherwise",),
        "test_drive_size": ("a new check",),
    }


def test_a_check_that_goes_is_told(repository) -> None:
    catalogue = "specs/checks/checks.yaml"
    text = (repository.root / catalogue).read_text()
    start = text.index("  - id: suites/seatrial/test_storage.py::test_drive_size")
    repository.edit(catalogue, text[start : text.index("  # ", start)], "")
    assert repository.plan().checks_gone == ("suites/seatrial/test_storage.py::test_drive_size",)


def test_what_the_inventory_says_of_a_node_makes_its_own_checks_stale(repository) -> None:
    repository.edit("inventory/h100-a.yml", "A520112X4400006", "A520112X4409999")
    (rerun,) = repository.plan().reruns
    assert rerun.nodes == ("n0006",)
    stale = {check.rpartition("::")[2] for check in rerun.because}
    assert stale == {"test_serial_at_the_bmc", "test_serial_is_the_inventorys"}


def test_the_profile_that_a_check_reads_makes_it_stale(repository) -> None:
    repository.edit("specs/profiles/managed.yaml", "hca_firmware: true", "hca_firmware: false")
    rerun = repository.plan().reruns[0]
    assert {check.rpartition("::")[2]: reasons for check, reasons in rerun.because.items()} == {
        "test_hca_firmware_is_the_bundles": ("profile.hca_firmware",)
    }


def test_a_repair_makes_every_phase_stale_that_must_be_newer_than_it(repository) -> None:
    by_node = {name: one for one in repository.firmware("01.05.11", "01.05.12").plan().reruns for name in one.nodes}
    leaves, watched = by_node["n0005"], by_node["n0017"]
    assert leaves.phases.keys() >= {"zap", "test", "production", "fabric"}
    assert len(leaves.phases["test"]) == sum("test" in one.phases for one in find_due(repository.declared()))
    assert len(leaves.phases["test"]) == len(set(leaves.phases["test"]))
    assert (leaves.is_repaired, watched.is_repaired) == (True, False)
