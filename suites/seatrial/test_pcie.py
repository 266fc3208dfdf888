"""Adapters and drives are in their slots, with all their lanes."""

import pytest

pytestmark = [pytest.mark.phase("seatrial", "production"), pytest.mark.passive]


@pytest.mark.phase("seatrial")
@pytest.mark.fault("host.config.drift")
def test_hca_is_in_its_slot(hca, measure):
    """Compare the adapter's PCI address with the spec: in another slot, the adapter is far from its GPU."""
    measure("pci", hca.pci, equals=hca.declared.pci)


@pytest.mark.fault("host.pcie.degraded")
def test_hca_pcie_link(node, hca, limits, measure):
    """Check that the adapter's PCIe link has full width and generation: half the lanes halve the rail."""
    link = node.pci[hca.pci].link
    measure("pcie_width", link.width, at_least=limits.hca_pcie_width, unit="lanes")
    measure("pcie_generation", link.generation, at_least=limits.hca_pcie_generation, unit="generation")


@pytest.mark.fault("gpu.missing")
def test_gpu_is_on_the_bus(node, gpu):
    """Check that a GPU of AMD is at its PCI address, as the kernel sees it without any tool of the vendor."""
    place = _address(gpu)
    kind = str(node.pci[place].kind) if place in node.pci else "nothing"
    assert kind in ("accelerator", "gpu"), f"{place} has {kind}"


@pytest.mark.fault("gpu.pcie.degraded")
def test_gpu_has_its_lanes(node, gpu, limits, measure):
    """Check that the PCIe link of a GPU of AMD has full width and generation."""
    link = node.pci[_address(gpu)].link
    measure("pcie_width", link.width, at_least=limits.pcie_width, unit="lanes")
    measure("pcie_generation", link.generation, at_least=limits.pcie_generation, unit="generation")


@pytest.mark.fault("host.pcie.degraded")
def test_drive_pcie_link(node, nvme, limits, measure):
    """Check that the drive's PCIe link has full width and generation."""
    link = node.pci[nvme.pci].link
    measure("pcie_width", link.width, at_least=limits.nvme_pcie_width, unit="lanes")
    measure("pcie_generation", link.generation, at_least=limits.nvme_pcie_generation, unit="generation")


@pytest.mark.phase("seatrial")
@pytest.mark.fault("host.config.drift")
def test_rails_are_near_their_gpus(node, spec, measure):
    """Check that each adapter is on the NUMA node of its GPU, if each GPU has one adapter."""
    seen = {hca.name: node.hca[hca.name].numa_node for hca in spec.hcas}
    for gpu, hca in zip(spec.gpus.pci, spec.hcas, strict=False) if len(seen) == len(spec.gpus.pci) else ():
        near = node.pci[gpu].numa_node
        measure("numa_node", seen[hca.name], equals=near, unit="count", place=f"of {hca.name}")


def _address(gpu):
    """Return the PCI address of a slot."""
    return gpu.declared.pci[int(gpu.slot[3:])].lower()
