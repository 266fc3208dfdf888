"""The kernel is the declared one, set up as declared, and has been through nothing bad."""

import pytest

pytestmark = [pytest.mark.phase("zap", "production"), pytest.mark.passive]

# Controls that send what one device has for another up to the processor and back.
DETOURS = {"request_redirect", "completion_redirect", "upstream_forwarding"}


@pytest.mark.fault("host.config.drift")
def test_kernel_version(node, spec, measure):
    """Compare the kernel that runs with the spec's."""
    measure("kernel", node.host.kernel, equals=spec.host.kernel or node.host.kernel)


@pytest.mark.fault("host.config.drift")
def test_kernel_modules(node, spec):
    """Find every module of the spec loaded: without nvidia_peermem, adapters do not reach GPU memory."""
    loaded = node.kernel.modules
    missing = [f"{name} ({name.source})" for name in spec.host.modules if name not in loaded]
    assert not missing, f"not loaded: {', '.join(missing)}"


@pytest.mark.fault("host.config.drift")
def test_sysctls(node, spec, measure):
    """Compare the kernel's settings with the spec's."""
    known = node.kernel.sysctl
    assert len(known), "the probe reads no sysctls"
    for name, wanted in spec.host.sysctls.items():
        measure(name, known[name], equals=wanted)


@pytest.mark.fault("host.config.drift")
def test_swap_is_off(node, measure):
    """Expect no swap: a node that swaps is one that hangs, and Kubernetes will not have it."""
    measure("swap", node.kernel.swap_bytes, equals=0)


@pytest.mark.fault("host.config.drift")
def test_transparent_hugepages(node, spec, measure):
    """Compare the use of huge pages with the spec's."""
    seen = node.kernel.transparent_hugepages
    measure("transparent_hugepages", seen, equals=spec.host.transparent_hugepages or seen)


@pytest.mark.fault("host.config.drift")
def test_iommu_of_gpus(node, spec, measure):
    """Compare what the IOMMU does with the GPUs' addresses with the spec's: translating each costs bandwidth."""
    for gpu in spec.gpus.pci:
        seen = node.pci[gpu].iommu
        measure("iommu", seen, equals=spec.host.iommu or seen, place=f"of {gpu}")


@pytest.mark.fault("host.config.drift")
def test_switches_let_devices_talk(node):
    """Refuse PCIe switches that send a GPU's traffic to its adapter by way of the processor (ACS redirection)."""
    ports = [pci for pci in node.pci if "acs" in node.pci[pci] and node.pci[pci].kind == "switch downstream"]
    wrong = [pci for pci in ports if DETOURS & set(node.pci[pci].acs)]
    assert not wrong, f"ACS redirects at {', '.join(wrong)}"


@pytest.mark.phase("production")
@pytest.mark.fault("host.kernel.tainted")
def test_kernel_went_through_nothing_bad(node):
    """Refuse a kernel that saw a machine check, a bad page, an oops or a soft lockup since it booted."""
    taints = list(node.kernel.taints)
    assert not taints, f"since boot the kernel saw {', '.join(taints)}"


@pytest.mark.fault("firmware.drift")
def test_bios_is_the_bundles(node, bundle, measure):
    """Compare the BIOS that the host runs with the bundle's: what was flashed is active only after a reset."""
    seen = node.host.bios.version
    wanted = next((component.version for component in bundle.components if "BIOS" in component.inventory), seen)
    measure("bios", seen, equals=wanted)
