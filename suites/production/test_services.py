"""Every required service runs, and no process hangs."""

import pytest

pytestmark = [pytest.mark.phase("production"), pytest.mark.passive]


@pytest.mark.phase("zap", "production")
@pytest.mark.fault("host.config.drift")
def test_services_are_active(node, spec):
    """Check that every service of the spec is active."""
    units, wanted = {name: node.services.units[name] for name in node.services.units}, spec.host.services
    seen = {name: units.get(name, "not installed") for name in wanted}
    wrong = [f"{name} is {seen[name]}, expected active ({name.source})" for name in wanted if seen[name] != "active"]
    assert not wrong, "; ".join(wrong)


@pytest.mark.fault("host.service")
def test_no_unit_has_failed(node):
    """Check that systemd has no failed unit."""
    failed = list(node.services.failed_units)
    assert not failed, f"failed: {', '.join(failed)}"


@pytest.mark.fault("host.stuck")
def test_no_process_is_stuck(node, limits, measure):
    """Count the processes in uninterruptible sleep that did not run between two readings."""
    stuck = list(node.host.processes.stuck)
    measure("stuck", len(stuck), at_most=limits.stuck_processes, unit="count", place=", ".join(stuck[:3]))


@pytest.mark.fault("host.stuck")
def test_few_zombies(node, limits, measure):
    """Count the zombies: processes that ended but whose parent did not collect them."""
    measure("zombies", node.host.processes.zombies, at_most=limits.zombies, unit="count")


@pytest.mark.fault("host.stuck")
def test_load_is_bearable(node, limits, measure):
    """Compare the load of the last 15 minutes with what the processors can carry."""
    load = node.host.load.fifteen_min / node.host.cpu_threads
    measure("load_per_thread", load, at_most=limits.load_per_thread, unit="count")
