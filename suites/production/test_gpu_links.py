"""NVLinks run at full speed without errors, and the GPUs of a node form one fabric."""

import pytest

pytestmark = [pytest.mark.phase("seatrial", "test", "production"), pytest.mark.passive]


@pytest.mark.fault("gpu.nvlink.down")
def test_nvlink_speed(gpu, limits, measure):
    """Compare the speed of the slowest NVLink with that of its generation."""
    slowest = min(gpu.nvlink.link[link].speed_gb_s for link in gpu.nvlink.link)
    measure("nvlink_speed", slowest, at_least=limits.nvlink_speed, unit="GB/s")


@pytest.mark.fault("gpu.nvlink.errors")
def test_nvlinks_do_not_recover(gpu, limits, measure, since_last_pass):
    """Count how often the worst NVLink had to recover since the last pass."""
    worst = max(since_last_pass(gpu.nvlink.link[link].recoveries) for link in gpu.nvlink.link)
    measure("nvlink_recoveries", worst, at_most=limits.nvlink_recoveries, unit="count")


@pytest.mark.fault("gpu.nvlink.errors")
def test_nvlinks_lose_no_data(gpu, limits, measure, since_last_pass):
    """Count the data errors of the worst NVLink since the last pass."""
    worst = max(since_last_pass(gpu.nvlink.link[link].crc_errors) for link in gpu.nvlink.link)
    measure("nvlink_crc_errors", worst, at_most=limits.nvlink_crc_errors, unit="count")


@pytest.mark.fault("gpu.fabric")
def test_fabric_is_joined(gpu, measure):
    """Check that the fabric manager has added the GPU to its fabric."""
    measure("fabric_state", gpu.fabric.state, equals="completed")
    measure("fabric_status", gpu.fabric.status, equals="success")


@pytest.mark.fault("gpu.fabric")
def test_gpus_are_in_one_fabric(node):
    """Check that all GPUs of a node are in one cluster and clique: otherwise they cannot share memory."""
    fabrics = sorted({f"{gpu.fabric.cluster} clique {gpu.fabric.clique}" for gpu in node.gpus})
    assert len(fabrics) == 1, f"the GPUs are in {' and in '.join(fabrics)}"
