"""Driver and kernel have the settings of the spec."""

import pytest

pytestmark = [pytest.mark.phase("zap", "production"), pytest.mark.passive]


@pytest.mark.fault("host.config.drift")
def test_driver_version(node, spec, measure):
    """Compare the GPU driver's version with the spec."""
    measure("driver", node.gpu.driver, equals=spec.driver)


@pytest.mark.fault("host.config.drift")
def test_fabric_manager_version(node, spec, measure):
    """Compare the fabric manager's version with the spec: another one than the driver's does not start."""
    versions = node.kernel.versions
    if wanted := spec.fabric_manager:
        measure("fabric_manager", versions.fabric_manager, equals=wanted)


@pytest.mark.fault("host.config.drift")
def test_kernel_command_line(node, spec):
    """Check that the kernel's command line has every setting of the spec."""
    given = node.host.cmdline.split()
    missing = [f"{setting} ({setting.source})" for setting in spec.kernel_cmdline if setting not in given]
    assert not missing, f"not on the kernel's command line: {', '.join(missing)}"
