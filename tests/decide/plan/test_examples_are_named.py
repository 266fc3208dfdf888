"""What an example will refuse on real machines is named in the plan, before the merge."""

from __future__ import annotations

from dataclasses import replace

from assay.decide.plan.change_plan import make_change_plan
from assay.decide.plan.inputs import FleetFacts

SETTINGS = "a change of settings is refused on a real machine: host.time_servers.0: 'ntp1.lab1.example'"
PUSH = "a push of firmware is refused on a real machine: FirmwareBundle hgx-h100-2026-10 stands in for your own"


def list_refusals(made):
    return [note for note in made.notes if "will be refused" in note]


def test_a_flash_names_the_bundle_the_settings_and_the_machines_that_are_examples(repository) -> None:
    machines, settings, push = list_refusals(repository.firmware("01.05.11", "01.05.12").plan())
    assert machines.endswith("serial_number in the inventory is a serial number of assay's own example")
    assert machines.startswith("a zap of 16 nodes (n0001..n0016) will be refused: "), "only nodes that assay zaps"
    assert f"specs/nodes/hgx-h100.yaml:92: {SETTINGS}" in settings
    assert f"specs/firmware/hgx-h100-2026-10.yaml:6: {PUSH}" in push


def test_a_zap_without_firmware_names_no_bundle_and_other_changes_name_nothing(repository) -> None:
    zapped = list_refusals(repository.spec("driver: 570", "driver: 580").plan())
    assert zapped
    assert not [note for note in zapped if PUSH in note]
    repository.commit()
    limited = repository.spec("gpu_temperature: {value: 85", "gpu_temperature: {value: 84").plan()
    assert list_refusals(limited) == []


def test_what_is_a_sites_own_is_not_named(repository) -> None:
    bundle = repository.root / "specs/firmware/hgx-h100-2026-10.yaml"
    bundle.write_text("".join(line for line in bundle.read_text().splitlines(True) if "stands_in" not in line))
    repository.commit()
    assert not [note for note in list_refusals(repository.firmware("01.05.11", "01.05.12").plan()) if PUSH in note]


def test_the_lab_refuses_nothing(repository) -> None:
    declared = (repository.declared("HEAD"), repository.firmware("01.05.11", "01.05.12").declared())
    before, after = (replace(each, fleet=replace(each.fleet, is_lab=True)) for each in declared)
    assert list_refusals(make_change_plan(before, after, FleetFacts())) == []
