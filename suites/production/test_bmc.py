"""The BMC reports its node healthy, area by area, and its reports are credible."""

import pytest

pytestmark = [pytest.mark.phase("seatrial", "production"), pytest.mark.passive]


@pytest.mark.fault("bmc.unhealthy")
def test_bmc_itself_is_well(bmc):
    """Read the health of the BMC itself: all its other reports depend on it."""
    assert bmc.manager.health == "OK", f"the BMC's own health is {bmc.manager.health}"


@pytest.mark.fault("bmc.unhealthy")
def test_every_area_is_well(bmc):
    """Read the health that the BMC sums up for each area of the node."""
    unwell = [f"{area} is {bmc.health[area]}" for area in bmc.health if bmc.health[area] != "OK"]
    assert not unwell, ", ".join(unwell)


@pytest.mark.fault("host.clock")
def test_bmc_clock(bmc, limits, measure):
    """Compare the BMC's clock with ours: if it is wrong, the times in its log are useless."""
    measure("bmc_clock_off", abs(bmc.manager.clock_off_s), at_most=limits.bmc_clock_off, unit="s")


@pytest.mark.phase("production")
@pytest.mark.fault("bmc.unhealthy")
def test_no_critical_event(bmc, limits, measure, since_last_pass):
    """Count the critical entries of the event log since the last judgement: each is a fault of its own."""
    grown = since_last_pass(bmc.event_log.critical, logged=True)
    measure("critical_events", grown, at_most=limits.critical_events, unit="count")


@pytest.mark.fault("bmc.event.intrusion")
def test_lid_is_closed(bmc):
    """Check that nobody opened the node's lid since the last inspection."""
    assert bmc.chassis.intrusion == "Normal", f"the intrusion sensor says {bmc.chassis.intrusion}"


@pytest.mark.fault("bmc.event.processor")
def test_processors_are_well(bmc, spec, measure):
    """Count the processors that the BMC sees, and check that each is healthy."""
    cpus = bmc.processor.cpu
    measure("cpus", len(cpus), equals=spec.cpu_sockets)
    unwell = [f"{name} is {cpus[name].health}" for name in cpus if cpus[name].health != "OK"]
    assert not unwell, ", ".join(unwell)


@pytest.mark.fault("gpu.missing")
def test_gpus_are_well_out_of_band(node, bmc, spec, measure):
    """Count the GPUs that the BMC sees in their sockets, and check that each is healthy."""
    gpus = bmc.processor.gpu
    measure("gpus", len(gpus), equals=spec.gpus.count)
    unwell = [f"{node.name_own(name)} is {gpus[name].health}" for name in gpus if gpus[name].health != "OK"]
    assert not unwell, ", ".join(unwell)


@pytest.mark.fault("host.memory.errors")
def test_memory_modules_are_well(bmc):
    """Check that the BMC finds every memory module healthy."""
    unwell = [f"{slot} is {bmc.memory[slot].health}" for slot in bmc.memory if bmc.memory[slot].health != "OK"]
    assert not unwell, ", ".join(unwell)


@pytest.mark.fault("host.memory.missing")
def test_memory_is_all_there(bmc, spec, measure):
    """Add up the modules: one that failed memory training is missing here, even if the kernel's total looks right."""
    measure("memory", sum(bmc.memory[slot].gib for slot in bmc.memory), at_least=spec.memory_gib, unit="GiB")
