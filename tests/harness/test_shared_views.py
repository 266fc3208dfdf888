"""Views of specs and walked branches serve many checks, and none of these notices the others."""

from __future__ import annotations

pytest_plugins = ["pytester"]

SUITE = """
import pytest

pytestmark = pytest.mark.phase("production")

def test_a_changes_what_it_was_given(node, spec):
    spec.gpus.pci.clear()
    spec.host.sysctls["kernel.panic"] = "never"
    node.host.load

def test_b_is_given_it_whole(node, spec):
    assert len(spec.gpus.pci) == spec.gpus.count
    assert spec.host.sysctls.get("kernel.panic") != "never"
    assert node.host.cpu_threads > 0

def test_c_writes_to_a_spec(node, spec):
    spec.memory_gib = 1
    assert node.host.cpu_threads > 0

def test_d_writes_to_limits(node, limits):
    limits.gpu_temperature = 1000
    assert node.host.cpu_threads > 0

def test_e_finds_a_branch_that_went_silent(node):
    assert node.gpu.devices

def test_f_finds_it_again(node):
    assert node.gpu.devices

def test_g_looks_at_adapters_of_its_own_node(hca):
    assert hca.guid == hca.declared.guid
"""


def test_one_check_leaves_nothing_behind_for_the_next(fleet_copy, verdicts):
    fleet_copy.suite(SUITE)
    fleet_copy.collected("n0003")
    seen = verdicts(fleet_copy.outcomes("--assay-node", "n0003"))
    assert seen["a_changes_what_it_was_given"] == "pass: "
    assert seen["b_is_given_it_whole"] == "pass: "
    assert seen["c_writes_to_a_spec"].startswith("error: AttributeError")
    assert seen["d_writes_to_limits"].startswith("error: AttributeError")
    same = seen["e_finds_a_branch_that_went_silent"]
    assert same == seen["f_finds_it_again"]
    assert same == "error: n0003.probe.gpu.devices: failed: is a branch of the evidence and no value"


def test_each_node_has_the_guids_that_the_inventory_gives_it(fleet_copy):
    fleet_copy.suite(SUITE)
    fleet_copy.collected("n0003", "n0004")
    found = {
        (one.subject, one.verdict, one.reason)
        for one in fleet_copy.outcomes("--assay-node", "n0003,n0004")
        if "adapters_of_its_own" in one.check
    }
    assert {verdict for subject, verdict, _ in found if "/n0003/" in subject} == {"pass"}
    (told,) = [reason for subject, _, reason in found if subject == "h100-a/n0004/mlx5_0"]
    assert told.startswith("assert '0xa088c203009a0306' == '0xa088c203009a0406'")
