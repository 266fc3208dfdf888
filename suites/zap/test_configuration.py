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


@pytest.mark.fault("host.config.drift")
def test_module_options(node, spec, measure):
    """Compare the options of loaded kernel modules with the spec: a module takes them only when it loads."""
    kernel = node.kernel
    assert len(kernel), "the probe shows nothing of the kernel"
    for module, options in spec.host.module_options.items():
        for name, wanted in options.items():
            measure(f"{module}.{name}", kernel.module_options[module][name], equals=wanted)


@pytest.mark.fault("host.config.drift")
def test_hugepages(node, spec, measure):
    """Compare the number of huge pages that the kernel reserves with the spec."""
    kernel = node.kernel
    assert len(kernel), "the probe shows nothing of the kernel"
    for size, wanted in spec.host.hugepages.items():
        measure(f"hugepages of {size}", kernel.hugepages[size].total, equals=wanted)


@pytest.mark.fault("host.config.drift")
def test_unit_settings(node, spec, measure):
    """Compare the settings that systemd has loaded for its units with the spec."""
    assert len(node.host), "the probe shows nothing of the host"
    for unit, settings in spec.host.unit_settings.items():
        for name, wanted in settings.items():
            measure(f"{unit} {name}", node.unit_settings[unit][name], equals=wanted)


@pytest.mark.fault("host.config.drift")
def test_time_servers(node, spec):
    """Check that chrony uses every server of the spec."""
    clock, wanted = node.time, spec.host.time_servers
    assert len(clock), "the probe shows nothing of the clock"
    if wanted:
        seen = list(clock.sources)
        missing = [f"{name} ({name.source})" for name in wanted if name not in seen]
        assert not missing, f"chrony does not use {', '.join(missing)}; it uses {', '.join(seen) or 'none'}"
