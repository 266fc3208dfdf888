"""The GPUs compute correctly, at full speed, and alike."""

import pytest

pytestmark = [pytest.mark.phase("test"), pytest.mark.active]


@pytest.mark.fault("gpu.burn.failed")
def test_gpu_burn(gpu, node, limits, measure):
    """Load the GPU fully: its results must be right, and its speed must reach the limit."""
    burned = node.active.gpu_burn.devices[str(gpu.index)]
    assert burned.ok, "computed wrong results"
    measure("gpu_burn", burned.gflops, at_least=limits.gpu_burn_gflops)


@pytest.mark.fault("gpu.burn.failed")
def test_gpus_burn_alike(node, limits, measure):
    """Compare the slowest GPU with the fastest of the node."""
    speeds = [node.active.gpu_burn.devices[str(gpu.index)].gflops for gpu in node.gpus]
    measure("gpu_burn_spread", 100 * (1 - min(speeds) / max(speeds)), at_most=limits.gpu_burn_spread, unit="%")
