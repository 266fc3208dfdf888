"""What a change of the repository is, told as a change of the fleet and not of its text."""

from __future__ import annotations

import json

import pytest

from assay.decide.plan.output_formats import format_plan_json, format_plan_text

ALL = tuple(f"n{number:04}" for number in range(1, 21))
MANAGED = ALL[:16]


def test_comments_blanks_and_order_change_nothing(repository) -> None:
    repository.spec("fans: 10\ncpu_sockets: 2\n", "cpu_sockets: 2 # both of them\n\nfans: 10\n")
    repository.edit(
        "suites/zap/test_configuration.py", "def test_driver_version", "# a comment\ndef test_driver_version"
    )
    made = repository.plan()
    assert not made.has_changes
    assert format_plan_text(made) == "HEAD → the working tree: nothing changes"


def test_a_commit_is_planned_against_another(repository) -> None:
    base = repository.git("rev-parse", "HEAD")
    repository.spec("driver: 570.172.08", "driver: 580.65.06").commit()
    changed = {
        (one.setting.field, one.setting.old, one.setting.new) for one in repository.plan(base=base).configuration
    }
    assert changed == {("driver", "570.172.08", "580.65.06")}
    assert not repository.plan().has_changes


def test_nodes_are_added_and_removed(repository) -> None:
    repository.remove("n0016")
    new = repository.host("n0015").replace("n0015", "n0021").replace("0015\n", "0021\n").replace("9a0f", "9a21")
    file = repository.root / "inventory/h100-a.yml"
    file.write_text(file.read_text() + new.replace("u: 24", "u: 14").replace("rack: r04", "rack: r09"))
    nodes = repository.plan().nodes
    assert [node.name for node in nodes.added] == ["n0021"]
    assert [node.name for node in nodes.removed] == ["n0016"]


@pytest.mark.parametrize(
    ("old", "new", "what", "was", "will"),
    [
        ("u: 14\n", "u: 16\n", "place", "lab1 r02 U14", "lab1 r02 U16"),
        ("rack: r02", "rack: r03", "place", "lab1 r02 U14", "lab1 r03 U14"),
        ("A520112X4400006", "A520112X4409999", "serial_number", "A520112X4400006", "A520112X4409999"),
        ("rack: r02", "rack: r02\n      profile: unmanaged", "profile", "managed", "unmanaged"),
        ("rack: r02", "rack: r02\n      pool: h100-b", "pool", "h100-a", "h100-b"),
        ("10.20.0.16", "10.20.0.99", "bmc_address", "10.20.0.16", "10.20.0.99"),
        ("9a0606", "9a06ff", "hca_guids", "0xa088c203009a0606", "0xa088c203009a06ff"),
    ],
)
def test_what_is_said_otherwise_of_a_node_is_named(repository, old, new, what, was, will) -> None:
    host = repository.host("n0006")
    assert old in host
    repository.edit("inventory/h100-a.yml", host, host.replace(old, new))
    changed = {one.what: one for one in repository.plan().nodes.changed}
    assert (changed[what].nodes, changed[what].old, changed[what].new) == (("n0006",), was, will)


def test_where_credentials_are_found_is_never_shown(repository) -> None:
    repository.edit("inventory/h100-a.yml", "{env: ASSAY_BMC}", "{env: SOMETHING_ELSE}")
    made = repository.plan()
    (change,) = made.nodes.changed
    assert (change.what, len(change.nodes), change.new) == ("bmc_credentials", 16, "given otherwise")
    assert "SOMETHING_ELSE" not in format_plan_text(made)


def test_a_bundle_that_changes_one_component_of_another_moves_that_component(repository) -> None:
    newer = "kind: FirmwareBundle\nname: newer\nextends: hgx-h100-2026-10\ncomponents:\n  bios: {version: '2.7.4'}\n"
    (repository.root / "specs/firmware/newer.yaml").write_text(newer)
    (move,) = repository.spec("firmware: hgx-h100-2026-10", "firmware: newer").plan().firmware
    assert (move.move.component, move.move.old, move.move.new) == ("bios", "2.7.3", "2.7.4")
    assert len(move.nodes) == len(ALL)


def test_firmware_moves_are_grouped_in_the_order_in_which_they_are_applied(repository) -> None:
    repository.firmware("2.7.3", "2.7.4").firmware("01.05.11", "01.05.12")
    moves = [(one.move.component, one.move.old, one.move.new, one.move.reset) for one in repository.plan().firmware]
    assert moves == [("bmc", "01.05.11", "01.05.12", "bmc"), ("bios", "2.7.3", "2.7.4", "host")]
    assert "20 nodes (n0001..n0020): bios 2.7.3 → 2.7.4, resets host, order 30" in format_plan_text(repository.plan())


def test_adapters_are_left_alone_where_the_profile_says_so(repository) -> None:
    (move,) = repository.firmware("28.43.2026", "28.43.3000").plan().firmware
    assert tuple(sorted(move.nodes)) == MANAGED


def test_what_somebody_applies_is_told_from_what_is_only_judged(repository) -> None:
    made = repository.spec("iommu=pt", "iommu=off").spec("fans: 10", "fans: 12").plan()
    how = {one.setting.field: (one.setting.how, one.setting.old, one.setting.new) for one in made.configuration}
    assert how == {"fans": ("judged", "10", "12"), "kernel_cmdline": ("applied", "iommu=pt", "iommu=off")}


def test_a_setting_that_no_check_reads_is_pointed_out(repository) -> None:
    made = repository.spec("height_u: 8", "height_u: 7").plan()
    assert made.notes == ("no check reads height_u of the spec: nobody will see whether 20 nodes became so",)


def test_a_limit_is_told_with_its_line_and_who_reads_it(repository) -> None:
    (limit,) = repository.spec("gpu_temperature: {value: 85", "gpu_temperature: {value: 83").plan().limits
    assert (limit.threshold.old, limit.threshold.new) == ("85 °C", "83 °C")
    assert limit.line.startswith("specs/nodes/hgx-h100.yaml:")
    assert limit.checks == ("suites/production/test_gpu.py::test_gpu_temperature",)


def test_a_node_of_another_spec_is_compared_with_what_it_was(repository) -> None:
    file = repository.root / "specs/nodes/hgx-h100.yaml"
    other = file.read_text().replace("name: hgx-h100\n", "name: hgx-other\n").replace("fans: 10", "fans: 8")
    (file.parent / "other.yaml").write_text(other)
    repository.commit()
    host = repository.host("n0006")
    repository.edit("inventory/h100-a.yml", host, host.replace("u: 14", "u: 14\n      node_spec: hgx-other"))
    made = repository.plan()
    assert [(one.what, one.nodes) for one in made.nodes.changed] == [("node_spec", ("n0006",))]
    assert [(one.setting.field, one.nodes) for one in made.configuration] == [("fans", ("n0006",))]
    assert [wave.nodes for wave in made.work.schedule.waves] == [("n0006",)]


def test_a_machine_with_another_name_is_renamed_and_neither_added_nor_removed(repository) -> None:
    repository.edit("inventory/byo-b.yml", "    n0018:\n", "    n0118:\n")
    names = '["n0001..n0017", n0118, n0019, n0020]'
    repository.edit("specs/fabrics/compute.yaml", '["n0001..n0020"]', names)
    made = repository.plan()
    nodes = made.nodes
    assert (nodes.added, nodes.removed, nodes.changed) == ((), (), ())
    assert "another machine" not in format_plan_text(made)
    assert [(old.name, new.name) for old, new in nodes.renamed] == [("n0018", "n0118")]
    assert "n0018 → n0118" in format_plan_text(made)
    assert "1 node renamed" in format_plan_text(made)
    assert json.loads(format_plan_json(made))["nodes"]["renamed"] == {"n0018": "n0118"}
    assert made.refused == ()


def test_two_machines_that_swap_their_names_are_renamed(repository) -> None:
    one, other = repository.host("n0001"), repository.host("n0002")
    repository.edit("inventory/h100-a.yml", one, one.replace("n0001:", "n0002:"))
    repository.edit("inventory/h100-a.yml", other, other.replace("n0002:", "n0001:"))
    plan = repository.plan()
    assert sorted((old.name, new.name) for old, new in plan.nodes.renamed) == [("n0001", "n0002"), ("n0002", "n0001")]
    assert "serial_number" not in {one.what for one in plan.nodes.changed}
    assert "another machine in its place: 2 nodes (n0001, n0002)" in format_plan_text(plan)
