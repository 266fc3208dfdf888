"""The host and its BMC answer and are healthy."""

import pytest

pytestmark = [pytest.mark.phase("production"), pytest.mark.passive]


@pytest.mark.fault("telemetry.lost")
def test_telemetry_answers(node):
    """Check that the node, its kernel log and its BMC, if it has one, answer."""
    assert node.host.uptime_s >= 0
    assert node.kernel_log.cursor >= 0
    if node.declared.bmc_address:
        assert node.bmc.system.power == "On", f"the BMC says the node is {node.bmc.system.power}"


@pytest.mark.fault("bmc.unhealthy")
def test_bmc_says_healthy(bmc):
    """Read the BMC's own summary of the node's health."""
    assert bmc.system.health == "OK", f"health is {bmc.system.health}"


@pytest.mark.fault("psu.failed")
def test_enough_power_supplies(node, bmc, spec, measure):
    """Check that enough power supplies are healthy to carry the load; a node on a busbar has none, and must be on."""
    if not spec.psus.count:
        assert bmc.system.power == "On", f"the BMC says the node is {bmc.system.power}"
        return
    well = [psu for psu in node.psus if psu.health == "OK"]
    measure("psus_well", len(well), at_least=spec.psus.needed)


@pytest.mark.fault("host.config.drift")
def test_root_file_system(node, limits, measure):
    """Check that the root file system is writable and not full."""
    assert not node.host.root_fs.read_only, "the root file system is read-only"
    measure("root_fs_used", node.host.root_fs.used_percent, at_most=limits.root_fs_used)


@pytest.mark.fault("gpu.pcie.degraded")
def test_pcie_errors(node, limits, measure, since_last_pass):
    """Count the PCIe errors of all devices since the last pass."""
    for device in node.aer:
        errors = node.aer[device]
        measure("aer_fatal", since_last_pass(errors.fatal), at_most=limits.aer_fatal, unit="count")
        measure("aer_nonfatal", since_last_pass(errors.nonfatal), at_most=limits.aer_nonfatal, unit="count")
        measure("aer_correctable", since_last_pass(errors.correctable), at_most=limits.aer_correctable, unit="count")
