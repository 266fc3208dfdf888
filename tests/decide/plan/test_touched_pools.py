"""The pools that a rehearsal goes through: those that a change touches, and no others."""

from __future__ import annotations

from assay.decide.plan.output_formats import find_touched_pools


def test_a_change_that_is_none_touches_no_pool(repository) -> None:
    repository.spec("fans: 10\n", "fans: 10 # of them\n")
    assert find_touched_pools(repository.plan()) == []


def test_a_changed_node_touches_its_own_pool(repository) -> None:
    repository.edit("inventory/byo-b.yml", "u: 4\n", "u: 6\n", times=1)
    assert find_touched_pools(repository.plan()) == ["byo-b"]


def test_a_changed_limit_touches_every_pool_of_nodes_that_have_it(repository) -> None:
    repository.spec("gpu_temperature: {value: 85", "gpu_temperature: {value: 84")
    assert find_touched_pools(repository.plan()) == ["byo-b", "h100-a"]


def test_a_new_pool_is_touched_and_a_removed_node_touches_nothing_that_is_there(repository) -> None:
    text = (repository.root / "inventory/byo-b.yml").read_text()
    (repository.root / "inventory/byo-c.yml").write_text(text.replace("byo-b", "byo-c"))
    (repository.root / "inventory/byo-b.yml").unlink()
    assert find_touched_pools(repository.plan()) == ["byo-c"]


def test_a_changed_policy_touches_every_pool(repository) -> None:
    repository.policy("pool_percent: 25", "pool_percent: 30")
    assert find_touched_pools(repository.plan()) == ["byo-b", "h100-a"]


def test_a_firmware_bundle_touches_the_pools_that_have_it(repository) -> None:
    repository.edit("specs/firmware/gb200-nvl72-1.3.yaml", "push: simple", "push: multipart", times=1)
    assert find_touched_pools(repository.plan()) == []
    repository.edit("specs/firmware/hgx-h100-2026-10.yaml", "push: simple", "push: multipart", times=1)
    assert find_touched_pools(repository.plan()) == ["byo-b", "h100-a"]


def test_an_image_touches_the_pools_that_boot_it_and_a_check_sees_it(repository) -> None:
    repository.edit("specs/images/gpu-node.yaml", "arguments: [console=ttyS0, quiet]", "arguments: [quiet]")
    plan = repository.plan()
    assert find_touched_pools(plan) == ["h100-a"]
    assert [change.seen_by for change in plan.configuration] == [("suites/zap/test_image.py::test_image",)]
    assert [note for note in plan.notes if "nobody will see" in note] == []


def test_an_image_that_no_node_boots_touches_nothing(repository) -> None:
    (repository.root / "specs/provisioning/lab1.yaml").unlink()
    repository.commit()
    repository.edit("specs/images/gpu-node.yaml", "arguments: [console=ttyS0, quiet]", "arguments: [quiet]")
    plan = repository.plan()
    assert (find_touched_pools(plan), [change.topic for change in plan.other]) == ([], ["spec"])


def test_provisioning_touches_the_pools_that_it_names_before_or_after(repository) -> None:
    repository.edit("specs/provisioning/lab1.yaml", "attempts: 3", "attempts: 4")
    assert find_touched_pools(repository.plan()) == ["h100-a"]
    repository.edit("specs/provisioning/lab1.yaml", "pools: [h100-a]", "pools: [byo-b]")
    assert find_touched_pools(repository.plan()) == ["byo-b", "h100-a"]


def test_a_profile_touches_the_pools_whose_nodes_have_it(repository) -> None:
    repository.edit("specs/profiles/managed.yaml", "acts_on_faults: true", "acts_on_faults: false")
    plan = repository.plan()
    assert [change.path for change in plan.profiles] == ["managed.acts_on_faults"]
    assert find_touched_pools(plan) == ["h100-a"]


def test_a_fabric_touches_the_pools_that_are_in_it(repository) -> None:
    repository.edit("specs/fabrics/compute.yaml", "receive_errors: {value: 10,", "receive_errors: {value: 12,")
    plan = repository.plan()
    assert [change.path for change in plan.fabrics] == ["compute.limits.receive_errors.value"]
    assert find_touched_pools(plan) == ["byo-b", "h100-a"]
    repository.edit("inventory/byo-b.yml", "    fabric: compute\n", "").commit()
    repository.edit("specs/fabrics/compute.yaml", "receive_errors: {value: 12,", "receive_errors: {value: 14,")
    assert find_touched_pools(repository.plan()) == ["h100-a"]
