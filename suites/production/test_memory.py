"""Memory and processors of the host make no errors."""

import pytest

pytestmark = [pytest.mark.phase("test", "production"), pytest.mark.passive]


def modules(node):
    """Yield every memory module that the controllers watch, with its place on the board."""
    for controller in node.memory.edac:
        dimms = node.memory.edac[controller].dimms
        for dimm in dimms:
            yield dimms[dimm], f"in {dimms[dimm].label}"


@pytest.mark.fault("host.dimm.uncorrected")
def test_no_uncorrected_host_memory_errors(node, limits, measure, since_last_pass):
    """Count the errors that lost data since the last pass, by memory module."""
    for dimm, place in modules(node):
        lost = since_last_pass(dimm.uncorrected)
        measure("uncorrected", lost, at_most=limits.edac_uncorrected, unit="count", place=place)


@pytest.mark.fault("host.dimm.corrected")
def test_few_corrected_host_memory_errors(node, limits, measure, since_last_pass):
    """Count the corrected errors since the last pass, by module: many of them announce an uncorrected one."""
    for dimm, place in modules(node):
        corrected = since_last_pass(dimm.corrected)
        measure("corrected", corrected, at_most=limits.edac_corrected, unit="count", place=place)


@pytest.mark.fault("host.dimm.uncorrected")
def test_no_memory_errors_of_unknown_place(node, limits, measure, since_last_pass):
    """Count the errors since the last pass for which the controller names no module."""
    for controller in node.memory.edac:
        unplaced, place = node.memory.edac[controller].unplaced, f"at {controller}"
        lost, corrected = since_last_pass(unplaced.uncorrected), since_last_pass(unplaced.corrected)
        measure("uncorrected", lost, at_most=limits.edac_uncorrected, unit="count", place=place)
        measure("corrected", corrected, at_most=limits.edac_corrected, unit="count", place=place)


@pytest.mark.fault("host.machine-check")
def test_no_machine_checks(node, limits, measure, since_last_pass):
    """Count the machine checks since the last pass; on Arm, where the kernel counts none, see the memory errors."""
    checks = node.memory.machine_checks
    for kind in (kind for kind in ("exceptions", "deferred") if kind in checks):
        measure(kind, since_last_pass(checks[kind]), at_most=limits.machine_checks, unit="count")
