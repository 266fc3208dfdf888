"""The declared kernel runs with the declared settings, and has met no serious error since boot."""

import pytest

pytestmark = [pytest.mark.phase("zap", "production"), pytest.mark.passive]

# Controls that send what one device has for another up to the processor and back.
DETOURS = {"request_redirect", "completion_redirect", "upstream_forwarding"}


@pytest.mark.fault("host.config.drift")
def test_kernel_version(node, spec, measure):
    """Compare the version of the running kernel with the spec."""
    measure("kernel", node.host.kernel, equals=spec.host.kernel or node.host.kernel)


@pytest.mark.fault("host.config.drift")
def test_kernel_modules(node, spec):
    """Check that every module of the spec is loaded: without nvidia_peermem, adapters cannot reach GPU memory."""
    loaded = node.kernel.modules
    missing = [f"{name} ({name.source})" for name in spec.host.modules if name not in loaded]
    assert not missing, f"not loaded: {', '.join(missing)}"


@pytest.mark.fault("host.config.drift")
def test_sysctls(node, spec, measure):
    """Compare the kernel's settings with the spec."""
    known = node.kernel.sysctl
    assert len(known), "the probe reads no sysctls"
    for name, wanted in spec.host.sysctls.items():
        measure(name, known[name], equals=wanted)


@pytest.mark.fault("host.config.drift")
def test_swap_is_off(node, measure):
    """Check that swap is off: a node that swaps hangs, and Kubernetes refuses it."""
    measure("swap", node.kernel.swap_bytes, equals=0)


@pytest.mark.fault("host.config.drift")
def test_transparent_hugepages(node, spec, measure):
    """Compare the huge page setting with the spec."""
    seen = node.kernel.transparent_hugepages
    measure("transparent_hugepages", seen, equals=spec.host.transparent_hugepages or seen)


@pytest.mark.fault("host.config.drift")
def test_iommu_of_gpus(node, spec, measure):
    """Compare the GPUs' IOMMU mode with the spec: translating every address costs bandwidth."""
    for gpu in spec.gpus.pci:
        seen = node.pci[gpu].iommu
        measure("iommu", seen, equals=spec.host.iommu or seen, place=f"of {gpu}")


@pytest.mark.fault("host.config.drift")
def test_switches_let_devices_talk(node):
    """Check that PCIe switches do not route traffic from GPU to adapter through the processor (ACS redirection)."""
    ports = [pci for pci in node.pci if "acs" in node.pci[pci] and node.pci[pci].kind == "switch downstream"]
    wrong = [pci for pci in ports if DETOURS & set(node.pci[pci].acs)]
    assert not wrong, f"ACS redirects at {', '.join(wrong)}"


@pytest.mark.phase("production")
@pytest.mark.fault("host.kernel.tainted")
def test_kernel_went_through_nothing_bad(node):
    """Check that the kernel met no machine check, bad page, oops or soft lockup since boot."""
    taints = list(node.kernel.taints)
    assert not taints, f"since boot the kernel saw {', '.join(taints)}"


@pytest.mark.fault("firmware.drift")
def test_bios_is_the_bundles(node, bundle, measure):
    """Compare the BIOS that the host runs with the bundle: a flashed BIOS is active only after a reset."""
    seen = node.host.bios.version
    wanted = next((component.version for component in bundle.components if "BIOS" in component.inventory), seen)
    measure("bios", seen, equals=wanted)
