"""Cables to move, as a work order: told as hands find them, rack by rack, and no more than is needed."""

from __future__ import annotations

DESIGN = "specs/fabrics/compute.yaml"


def test_two_adapters_in_each_other_s_place_are_one_swap(repository) -> None:
    host = repository.host("n0006")
    first, second = '"0xa088c203009a0606"', '"0xa088c203009a0616"'
    swapped = host.replace(first, "FIRST").replace(second, first).replace("FIRST", second)
    (job,) = repository.edit("inventory/h100-a.yml", host, swapped).plan().cables
    assert (job.what, job.nodes) == ("swap", ("n0006",))
    assert job.steps[0] == "exchange the plugs at n0006 mlx5_0 port R0 (r02 U14) and n0006 mlx5_1 port R1 (r02 U14)"
    assert job.steps[1].endswith("leads to leaf-su01-r0 port 3/2 (r06 U30), 10 m")


def test_an_adapter_that_is_replaced_keeps_its_cable(repository) -> None:
    (job,) = repository.edit("inventory/h100-a.yml", "9a0606", "9a06ff").plan().cables
    assert job.what == "device-changes"
    assert job.steps == (
        "n0006 (r02 U14): replace",
        "mlx5_0, port R0: 0xa088c203009a0606 by 0xa088c203009a06ff",
        "their cables stay",
    )


def test_a_node_that_goes_leaves_cables_to_take_out_and_moves_the_others_up(repository) -> None:
    cables = repository.remove("n0016").plan().cables
    assert {job.what for job in cables} == {"move"}
    assert len(cables) == 8  # one chain of plugs on each rail
    steps = cables[0].steps
    assert steps[:3] == (
        "take out the cable between n0016 mlx5_0 port R0 (r04 U34) and leaf-su01-r0 port 8/2 (r06 U30)",
        "move the plug from leaf-su01-r0 port 9/1 (r06 U30) to leaf-su01-r0 port 8/2 (r06 U30), 10 m",
        "the other plug stays in n0017 mlx5_0 port R0 (r05 U4)",
    )


def test_a_node_that_is_new_at_the_end_only_needs_cables_laid(repository) -> None:
    repository.edit(DESIGN, "n0001..n0020", "n0001..n0015").commit()
    made = repository.edit(DESIGN, "n0001..n0015", "n0001..n0016").plan()
    (job,) = made.cables
    assert (job.what, len(job.steps)) == ("lay", 8)
    assert job.steps[0] == "lay a cable from n0016 mlx5_0 port R0 (r04 U34) to leaf-su01-r0 port 8/2 (r06 U30), 10 m"


def test_a_switch_that_moves_takes_its_cables_along(repository) -> None:
    (job,) = repository.edit(DESIGN, "rack: r06, u: 30", "rack: r09, u: 12").plan().cables
    assert job.what == "device-moves"
    assert job.steps == ("move the switch leaf-su01-r0 from r06 U30 to r09 U12", "its 52 cables go with it")


def test_another_rate_or_length_is_one_line_and_not_one_for_each_cable(repository) -> None:
    repository.edit(DESIGN, "rate: 4xNDR", "rate: 4xXDR").edit(DESIGN, "node_leaf: 10", "node_leaf: 12")
    cables = repository.plan().cables
    assert sorted((job.what, job.steps) for job in cables) == [
        ("length", ("160 cables between nodes and leaves: 10 m → 12 m",)),
        ("rate", ("all 416 cables: 4xNDR → 4xXDR",)),
    ]


def test_a_fabric_that_is_new_or_gone_is_told_by_rack(repository) -> None:
    (repository.root / DESIGN).unlink()
    (job,) = repository.plan().cables
    assert (job.what, job.steps[0]) == ("take-out", "the fabric is no longer designed: 416 cables")
    assert "rack r01: take out 32 cables" in job.steps


def test_the_round_goes_from_rack_to_rack(repository) -> None:
    for name in ("9a0a06", "9a0506", "9a0f06"):
        repository.edit("inventory/h100-a.yml", name, f"{name[:-2]}ff")
    assert [job.nodes for job in repository.plan().cables] == [("n0005",), ("n0010",), ("n0015",)]


def test_checks_of_the_links_that_are_moved_are_stale(repository) -> None:
    repository.edit("inventory/h100-a.yml", "9a0606", "9a06ff")
    (rerun,) = repository.plan().reruns
    checks = {check.rpartition("::")[2] for check in rerun.because}
    assert {"test_link_leads_where_it_should", "test_hca_guid_is_the_inventorys"} <= checks
    assert rerun.nodes == ("n0006",)


def test_an_adapter_that_goes_to_another_node_is_no_replacement_but_cables_that_move(repository) -> None:
    first, second = "0xa088c203009a0606", "0xa088c203009a0906"
    for name, old, new in (("n0006", first, second), ("n0009", second, first)):
        host = repository.host(name)
        repository.edit("inventory/h100-a.yml", host, host.replace(old, new))
    (job,) = repository.plan().cables
    assert (job.what, job.nodes) == ("move", ("n0006", "n0009"))
    assert [step.partition(" port")[0] for step in job.steps[::2]] == [
        f"move the plug from {name} mlx5_0" for name in job.nodes
    ]


def test_a_switch_that_is_replaced_keeps_its_cables(repository) -> None:
    (job,) = repository.edit(DESIGN, "0xb83fd20300100000", "0xb83fd203001000ff").plan().cables
    assert job.what == "device-changes"
    assert job.steps == (
        "replace the switch leaf-su01-r0 (r06 U30): 0xb83fd20300100000 by 0xb83fd203001000ff",
        "its cables stay",
    )


def test_a_place_or_name_that_is_corrected_moves_no_cable(repository) -> None:
    repository.edit("inventory/h100-a.yml", "rack: r02", "rack: r09").edit(DESIGN, "leaf-su{unit:02}", "leaf-{unit:02}")
    assert repository.plan().cables == ()


LISTED = """\
cables:
  - {a: {device: leaf-su01-r0, port: 30}, b: {device: leaf-su01-r1, port: 30}, length_m: 3}
"""


def test_a_cable_that_is_listed_beside_the_rules_is_laid(repository) -> None:
    file = repository.root / DESIGN
    file.write_text(f"{file.read_text()}{LISTED}")
    (job,) = repository.plan().cables
    assert job.what == "lay"
    assert job.steps == ("lay a cable from leaf-su01-r0 port 15/2 (r06 U30) to leaf-su01-r1 port 15/2 (r06 U32), 3 m",)


def test_a_listed_cable_that_is_written_the_other_way_round_stays(repository) -> None:
    file = repository.root / DESIGN
    file.write_text(f"{file.read_text()}{LISTED}")
    repository.commit()
    turned = "a: {device: leaf-su01-r1, port: 30}, b: {device: leaf-su01-r0, port: 30}"
    repository.edit(DESIGN, "a: {device: leaf-su01-r0, port: 30}, b: {device: leaf-su01-r1, port: 30}", turned)
    assert repository.plan().cables == ()
    (job,) = repository.edit(DESIGN, "length_m: 3", "length_m: 5").plan().cables
    assert job.steps == ("the cable from leaf-su01-r1 port 30 to leaf-su01-r0 port 30: 3 m → 5 m",)


def test_a_plug_that_an_override_puts_elsewhere_is_moved(repository) -> None:
    file = repository.root / DESIGN
    override = "{device: leaf-su01-r0, port: 3, to: {device: leaf-su01-r0, port: 30}, why: port 3 is broken}"
    file.write_text(f"{file.read_text()}overrides: [{override}]\n")
    (job,) = repository.plan().cables
    assert (job.what, job.nodes) == ("move", ("n0003",))
    assert job.steps[0].startswith("move the plug from leaf-su01-r0 port 2/1 (r06 U30) to leaf-su01-r0 port 15/2")


def test_one_tier_may_change_its_rate(repository) -> None:
    file = repository.root / DESIGN
    file.write_text(f"{file.read_text()}rates: {{leaf_spine: 4xHDR}}\n")
    (job,) = repository.plan().cables
    assert (job.what, job.steps) == ("rate", ("256 cables between leaves and spines: 4xNDR → 4xHDR",))


RACK = "specs/fabrics/rack.yaml"
DOMAIN = """kind: FabricDesign
name: rack
rate: 2xXDR
nvlink: {compute_trays: ["n0001..n0003"], switch_trays: 9}
"""


def test_the_trays_of_an_nvlink_domain_come_and_go_and_no_link_is_laid_by_hand(repository) -> None:
    (repository.root / RACK).write_text(DOMAIN)
    new = repository.plan()
    (job,) = new.cables
    assert (job.what, job.steps) == ("lay", ("a new NVLink domain: 3 compute trays, 9 switch trays",))
    assert not new.reruns, "no check of a node's cables judges an NVLink domain"
    repository.commit()
    (job,) = repository.edit(RACK, '"n0001..n0003"', '"n0001..n0002", n0004').plan().cables
    assert (job.what, job.nodes) == ("device-changes", ("n0003", "n0004"))
    assert job.steps == ("other trays", "compute tray 2: n0003 → n0004")


def test_a_switch_tray_that_goes_takes_links_of_every_gpu(repository) -> None:
    (repository.root / RACK).write_text(DOMAIN)
    repository.commit()
    (job,) = repository.edit(RACK, "switch_trays: 9", "switch_trays: 8").plan().cables
    assert (job.steps, job.nodes) == (("other trays", "switch trays: 9 → 8"), ("n0001", "n0002", "n0003"))
    (repository.root / RACK).unlink()
    (job,) = repository.plan().cables
    assert job.steps == ("the NVLink domain is no longer designed: 3 compute trays, 9 switch trays",)
