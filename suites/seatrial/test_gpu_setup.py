"""GPUs have the settings that the fleet needs, and the GPUs of one node are alike."""

import pytest

pytestmark = [pytest.mark.phase("seatrial", "production"), pytest.mark.passive]


@pytest.mark.fault("gpu.pcie.degraded")
def test_pcie_trained_at_its_maximum(gpu, measure):
    """Compare the PCIe link with the most that this GPU and its slot can do together."""
    measure("pcie_generation", gpu.pcie.generation, at_least=gpu.pcie.generation_max)
    measure("pcie_width", gpu.pcie.width, at_least=gpu.pcie.width_max)


@pytest.mark.fault("host.config.drift")
def test_memory_of_the_model(gpu, limits, measure):
    """Compare the size of the GPU's memory with that of its model."""
    measure("gpu_memory", gpu.memory.total_bytes / 2**20, at_least=limits.gpu_memory, unit="MiB")


@pytest.mark.fault("host.config.drift")
def test_clocks_of_the_model(gpu, limits, measure):
    """Check that the GPU may run at its model's highest clocks."""
    measure("clock", gpu.clocks.sm_max_mhz, at_least=limits.gpu_clock)
    measure("memory_clock", gpu.clocks.memory_max_mhz, at_least=limits.gpu_memory_clock)


@pytest.mark.phase("seatrial")
@pytest.mark.fault("gpu.busy")
def test_no_process_is_left(gpu):
    """Check that no process uses a GPU that is out of service."""
    assert not gpu.processes.pids, f"used by process {', '.join(map(str, gpu.processes.pids))}"


@pytest.mark.fault("firmware.drift")
def test_gsp_runs_the_drivers_firmware(node, gpu, measure):
    """Compare the firmware of the GPU's system processor (GSP) with the driver that ships it."""
    measure("gsp_firmware", gpu.gsp, equals=node.gpu.driver)


@pytest.mark.fault("firmware.drift")
def test_gpus_carry_one_vbios(node):
    """Check that all GPUs of a node have one VBIOS version."""
    versions = sorted({gpu.vbios for gpu in node.gpus})
    assert len(versions) == 1, f"the GPUs carry the VBIOS {' and '.join(versions)}"


@pytest.mark.fault("firmware.drift")
def test_gpus_carry_one_inforom(node):
    """Check that all GPUs of a node have one InfoROM image."""
    versions = sorted({gpu.inforom.image for gpu in node.gpus})
    assert len(versions) == 1, f"the GPUs carry the InfoROM {' and '.join(versions)}"


@pytest.mark.phase("seatrial")
@pytest.mark.fault("host.config.drift")
def test_gpus_are_one_kind_of_board(node):
    """Check that all GPUs of a node have one board part number."""
    parts = sorted({gpu.board_part for gpu in node.gpus})
    assert len(parts) == 1, f"the GPUs are boards {' and '.join(parts)}"


@pytest.mark.phase("seatrial")
@pytest.mark.fault("host.config.drift")
def test_every_gpu_is_another(node):
    """Check that each GPU has a UUID of its own; two GPUs of a superchip may share a serial number."""
    uuids = [gpu.uuid for gpu in node.gpus]
    twice = sorted({uuid for uuid in uuids if uuids.count(uuid) > 1})
    assert not twice, f"{' and '.join(twice)} answers more than once"
