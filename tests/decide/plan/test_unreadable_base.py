"""A base that cannot be read gets the plan of its repair: what can be compared, and a line for what cannot."""

from __future__ import annotations

import pytest

from assay.decide.plan.output_formats import find_touched_pools
from assay.model.errors import AssayError

SPEC = "specs/nodes/hgx-h100.yaml"
POLICY = "specs/lifecycle/default.yaml"


@pytest.mark.parametrize(
    ("path", "good", "bad"),
    [
        (SPEC, "kind: NodeSpec", "kind: [NodeSpec"),
        (SPEC, "\nfans: 10", "\npropellers: 10"),
        (POLICY, "kind: LifecyclePolicy", "kind: LifecyclePolicy\nold_key: 1"),
        (POLICY, "kind: LifecyclePolicy", "kind: {"),
        ("specs/firmware/hgx-h100-2026-10.yaml", "kind: FirmwareBundle", "kind: Firmware"),
        ("specs/fabrics/compute.yaml", "rails: 8", "rails: eight"),
        ("specs/faults/gpu.yaml", "kind: FaultCatalog", "kind: FaultCatalog\nold_key: 1"),
        ("inventory/h100-a.yml", "hosts:", "hosts: ["),
    ],
)
def test_what_cannot_be_read_is_named_and_the_rest_is_compared(repository, path, good, bad) -> None:
    repository.edit(path, good, bad, 1).commit()
    repository.edit(path, bad, good, 1)
    repository.edit("specs/gates/default.yaml", "success_percent: 99", "success_percent: 98")
    plan = repository.plan()
    assert path in {one.line.partition(":")[0] for one in plan.other if one.topic == "unread"}
    assert plan.risks[0].risk == "the base cannot be read"
    assert [one.topic for one in plan.other if one.topic == "gate"] == ["gate"]
    assert find_touched_pools(plan) == ["byo-b", "h100-a"]
    assert (plan.nodes.added, plan.nodes.removed, plan.firmware, plan.cables, plan.refused) == ((), (), (), (), ())


@pytest.mark.parametrize(
    ("path", "good", "bad"),
    [
        (SPEC, "firmware: hgx-h100-2026-10", "firmware: hgx-h100-1999-01"),
        ("inventory/byo-b.yml", "profile: unmanaged", "profile: nobodys"),
        ("specs/fabrics/compute.yaml", '"n0001..n0020"', '"n0001..n0021"'),
    ],
)
def test_a_base_whose_names_lead_nowhere_is_mended_by_the_merge(repository, path, good, bad) -> None:
    repository.edit(path, good, bad).commit()
    plan = repository.edit(path, bad, good).plan()
    assert [one.risk for one in plan.risks] == ["the base cannot be read"]


def test_a_base_with_two_policies_is_mended_by_the_merge(repository) -> None:
    second = repository.root / "specs/lifecycle/second.yaml"
    second.write_text((repository.root / POLICY).read_text().replace("name: default", "name: second", 1))
    repository.commit()
    second.unlink()
    (risk,) = repository.plan().risks
    assert "there are 2 lifecycle policies" in risk.why


CABLE = """
overrides:
  - {device: leaf-su01-r0, port: 1, to: {device: nothing-01, port: 3}, why: planted}
"""
GUIDS = '"0xa088c203009a1076"', '"0xa088c203009a1066"'


@pytest.mark.parametrize("mistake", ["a guid twice", "a cable to nothing", "a fabric that goes"])
def test_a_base_whose_cables_cannot_be_compiled_is_mended_by_the_merge(repository, mistake) -> None:
    design = repository.root / "specs/fabrics/compute.yaml"
    good = design.read_text()
    if mistake == "a cable to nothing":
        design.write_text(good.replace("rails: 8", f"rails: 8{CABLE}", 1))
    else:
        repository.edit("inventory/h100-a.yml", *GUIDS, 1)
    repository.commit()
    if mistake == "a fabric that goes":
        design.unlink()
        for pool in ("h100-a", "byo-b"):
            repository.edit(f"inventory/{pool}.yml", "    fabric: compute\n", "")
    elif mistake == "a cable to nothing":
        design.write_text(good)
    else:
        repository.edit("inventory/h100-a.yml", *GUIDS[::-1], 1)
    plan = repository.edit("specs/gates/default.yaml", "success_percent: 99", "success_percent: 98").plan()
    (risk,) = [one for one in plan.risks if one.risk == "the base cannot be read"]
    assert "the cables of compute cannot be compiled" in risk.why
    assert [one.topic for one in plan.other if one.topic == "gate"] == ["gate"]
    assert (plan.cables, plan.refused) == ((), ())


def test_a_head_whose_cables_cannot_be_compiled_has_no_plan(repository) -> None:
    repository.edit("inventory/h100-a.yml", *GUIDS, 1)
    with pytest.raises(AssayError, match="0xa088c203009a1066"):
        repository.plan()


def test_a_base_that_can_be_read_has_no_such_risk(repository) -> None:
    assert repository.plan().risks == ()
