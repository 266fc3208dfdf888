"""The GPUs train right together: with data spread over them, or with layers shared out."""

import pytest

pytestmark = [pytest.mark.phase("test"), pytest.mark.active]


@pytest.mark.fault("collective.wrong")
def test_gpu_holds_the_state_in_data_parallel(gpu, data_parallel, limits, measure):
    """Compare the GPU's state after each step with that of its peers: the data are spread, the state is one."""
    results = data_parallel.of(gpu)
    measure("wrong_steps", results.spoilt_units, at_most=0, unit="count", place=results.spoilt)
    results.require_told(limits.training_steps)


@pytest.mark.fault("gpu.sdc")
def test_gpu_trains_as_golden_in_data_parallel(gpu, data_parallel, limits, measure):
    """Compare losses, gradients and states with golden ones, which tell whose gradients spoilt the sum."""
    results = data_parallel.of(gpu)
    measure("golden_steps", results.golden_steps, unit="count")
    measure("wrong_golden_steps", results.wrong_golden_steps, at_most=0, unit="count", place=results.first_wrong)
    data_parallel.require_units(results.golden_steps, limits.training_steps)


@pytest.mark.fault("collective.wrong")
def test_data_parallel_ends_well(data_parallel, limits, measure):
    """Require that training ended by itself after enough steps, with a loss of each GPU that is a number."""
    measure("wrong_losses", data_parallel.wrong_losses, at_most=0, unit="count", place=data_parallel.wrong_loss)
    data_parallel.require_end(limits.training_steps)
    measure("data_parallel_speed", data_parallel.tokens_per_s)


@pytest.mark.fault("collective.slow")
def test_data_parallel_as_fast_as_the_fleet(data_parallel, node, limits, measure):
    """Compare the node's tokens per second, with the data spread, with the median of other nodes of this kind."""
    below = 100 * (1 - data_parallel.tokens_per_s / node.fleet.data_parallel_speed.median)
    measure("below_fleet", below, at_most=limits.gpu_below_fleet, unit="%")


@pytest.mark.fault("collective.wrong")
def test_gpu_holds_the_state_in_tensor_parallel(gpu, tensor_parallel, limits, measure):
    """Compare the part of the GPU's state that all have with that of its peers, after each step."""
    results = tensor_parallel.of(gpu)
    measure("wrong_steps", results.spoilt_units, at_most=0, unit="count", place=results.spoilt)
    results.require_told(limits.training_steps)


@pytest.mark.fault("gpu.sdc")
def test_gpu_trains_as_golden_in_tensor_parallel(gpu, tensor_parallel, limits, measure):
    """Compare losses, gradients and states with golden ones; a wrong sum in the layers is wrong on all GPUs."""
    results = tensor_parallel.of(gpu)
    measure("golden_steps", results.golden_steps, unit="count")
    measure("wrong_golden_steps", results.wrong_golden_steps, at_most=0, unit="count", place=results.first_wrong)
    tensor_parallel.require_units(results.golden_steps, limits.training_steps)


@pytest.mark.fault("collective.wrong")
def test_tensor_parallel_ends_well(tensor_parallel, limits, measure):
    """Require that training ended by itself after enough steps, with one loss on all GPUs that is a number."""
    measure("wrong_losses", tensor_parallel.wrong_losses, at_most=0, unit="count", place=tensor_parallel.wrong_loss)
    tensor_parallel.require_end(limits.training_steps)
    measure("tensor_parallel_speed", tensor_parallel.tokens_per_s)


@pytest.mark.fault("collective.slow")
def test_tensor_parallel_as_fast_as_the_fleet(tensor_parallel, node, limits, measure):
    """Compare the node's tokens per second, with the layers shared out, with the median of other nodes of this kind."""
    below = 100 * (1 - tensor_parallel.tokens_per_s / node.fleet.tensor_parallel_speed.median)
    measure("below_fleet", below, at_most=limits.gpu_below_fleet, unit="%")
