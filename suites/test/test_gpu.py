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


@pytest.mark.fault("gpu.slow")
def test_tensor_cores_at_speed(gpu, node, limits, measure):
    """Compare the speed of matrix products on tensor cores (ubergemm) with its limit."""
    multiplied = node.active.ubergemm.devices[str(gpu.index)]
    measure("tensor_speed", multiplied.gflops, at_least=limits.gpu_tensor_speed)


@pytest.mark.fault("gpu.slow")
def test_tensor_cores_as_in_the_fleet(gpu, node, limits, measure):
    """Compare the GPU's speed on tensor cores (ubergemm) with the median of other nodes of this kind."""
    speed = node.active.ubergemm.devices[str(gpu.index)].gflops
    below = 100 * (1 - speed / node.fleet.tensor_speed.median)
    measure("below_fleet", below, at_most=limits.gpu_below_fleet, unit="%")


@pytest.mark.fault("gpu.slow")
def test_tensor_cores_alike(node, limits, measure):
    """Compare the slowest GPU with the fastest of the node, on tensor cores (ubergemm)."""
    speeds = [node.active.ubergemm.devices[str(gpu.index)].gflops for gpu in node.gpus]
    measure("tensor_spread", 100 * (1 - min(speeds) / max(speeds)), at_most=limits.gpu_burn_spread, unit="%")


@pytest.mark.fault("gpu.slow")
def test_tensor_cores_alike_in_dcgmproftester(node, limits, measure):
    """Compare the slowest GPU with the fastest of the node, on tensor cores (dcgmproftester)."""
    speeds = [node.active.dcgmproftester.devices[str(gpu.index)].gflops for gpu in node.gpus]
    measure("tensor_spread", 100 * (1 - min(speeds) / max(speeds)), at_most=limits.gpu_burn_spread, unit="%")


@pytest.mark.fault("gpu.slow")
def test_gpu_fryer(gpu, node, limits, measure):
    """Read what gpu-fryer says of the GPU, and compare its speed in bf16 with its limit."""
    fried = node.active.gpu_fryer.devices[str(gpu.index)]
    assert not fried.problem, f"gpu-fryer says {fried.problem}"
    measure("gpu_fryer", fried.gflops, at_least=limits.gpu_fryer_speed)


@pytest.mark.fault("gpu.copy.slow")
def test_copies_from_and_to_the_host(gpu, node, limits, measure):
    """Compare the speed of copies between host and GPU, each way, with its limit."""
    for name, copies in (
        ("host_to_device", node.active.nvbandwidth.host_to_device),
        ("device_to_host", node.active.nvbandwidth.device_to_host),
    ):
        measure(name, copies[str(gpu.index)].gb_s, at_least=limits.gpu_host_copy)


@pytest.mark.fault("gpu.copy.slow")
def test_copies_between_gpus(gpu, node, limits, measure):
    """Compare the speed of copies between the GPU and its slowest peer with its limit."""
    copies = node.active.nvbandwidth.device_to_device[str(gpu.index)]
    measure("device_to_device", copies.gb_s, at_least=limits.gpu_peer_copy)


@pytest.mark.fault("gpu.copy.slow")
def test_copies_alike(node, limits, measure):
    """Compare the GPU with the slowest copies from the host with the fastest of the node."""
    speeds = [node.active.nvbandwidth.host_to_device[str(gpu.index)].gb_s for gpu in node.gpus]
    measure("copy_spread", 100 * (1 - min(speeds) / max(speeds)), at_most=limits.gpu_copy_spread, unit="%")


@pytest.mark.fault("gpu.burn.failed")
def test_hpl_is_right(node, measure):
    """Read whether all residuals of HPL are small enough, and record its speed."""
    assert node.active.hpl.right, "a residual of HPL is too large"
    measure("hpl", node.active.hpl.gflops)
