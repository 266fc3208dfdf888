"""DCGM's own tests of the GPUs find nothing. What it skipped is no pass, except tests that the spec calls optional."""

import pytest

pytestmark = [pytest.mark.phase("test"), pytest.mark.active]

LEVELS = ("dcgm_diag_1", "dcgm_diag_2", "dcgm_diag_3", "dcgm_diag_4")
ISOLATE = 205  # DCGM_ST_NVVS_ISOLATE_ERROR


def asked_diagnoses(node):
    """Return what each level said that was asked for. Where none was, the check is not due."""
    asked = [level for level in LEVELS if level in node.active]
    return [node.active[level] for level in asked or LEVELS[:1]]


def judge_tests(tests, skipped, optional):
    """Fail on what DCGM found. A test that it skipped has no value, which ends the check."""
    found = {name: tests[name] for name in tests if name not in skipped}
    bad = [f"{name}: {said}" for name, said in found.items() if said != "Pass"]
    assert not bad, "; ".join(bad)
    for name in skipped:
        assert name in optional or tests[name]


@pytest.mark.fault("gpu.diag.failed")
def test_gpu_passes_the_diagnosis(gpu, node, spec):
    """Read what DCGM's tests say of the GPU."""
    for diagnosis in asked_diagnoses(node):
        told = diagnosis.devices[str(gpu.index)]
        judge_tests(told.tests, told.skipped, spec.dcgm_optional_tests)


@pytest.mark.fault("gpu.diag.failed")
def test_node_passes_the_diagnosis(node, spec):
    """Read what DCGM's tests say of the node as a whole, and whether DCGM asks to isolate it."""
    for diagnosis in asked_diagnoses(node):
        assert diagnosis.exit_code != ISOLATE, "DCGM asks to isolate the node"
        judge_tests(diagnosis.node.tests, diagnosis.node.skipped, spec.dcgm_optional_tests)


@pytest.mark.fault("gpu.diag.failed")
def test_rack_passes_the_diagnosis(node):
    """Read what DCGM's test of the whole rack says of this node's GPUs."""
    gpus = node.active.dcgm_mndiag.devices
    bad = [f"GPU {gpu}: {name}: {gpus[gpu][name]}" for gpu in gpus for name in gpus[gpu] if gpus[gpu][name] != "Pass"]
    assert not bad, "; ".join(bad)
