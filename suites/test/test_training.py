"""The GPUs train right: the same batch gives the same bits on each of them, step by step, and takes as long."""

import pytest

pytestmark = [pytest.mark.phase("test"), pytest.mark.active]


@pytest.mark.fault("gpu.sdc")
def test_gpu_trains_as_its_peers(gpu, training, limits, measure):
    """Compare the GPU's state after each step with that of its peers: a wrong number stays in all later steps."""
    results = training.of(gpu)
    measure("wrong_steps", results.wrong_units, at_most=0, unit="count", place=results.wrong)
    results.require_told(limits.training_steps)
    measure("training_speed", results.tokens_per_s)


@pytest.mark.fault("gpu.sdc")
def test_gpu_trains_as_golden(gpu, training, limits, measure):
    """Compare the GPU's losses, gradients and states with golden ones, bit by bit, where the spec has some."""
    results = training.of(gpu)
    measure("golden_steps", results.golden_steps, unit="count")
    measure("wrong_golden_steps", results.wrong_golden_steps, at_most=0, unit="count", place=results.first_wrong)
    training.require_units(results.golden_steps, limits.training_steps)


@pytest.mark.fault("gpu.sdc")
def test_training_ends_well(training, limits, measure):
    """Require that training ended by itself after enough steps, each with one loss that is a number on all GPUs."""
    measure("wrong_losses", training.wrong_losses, at_most=0, unit="count", place=training.wrong_loss)
    training.require_end(limits.training_steps)


@pytest.mark.fault("gpu.burn.failed")
def test_gpus_train_alike_fast(training, limits, measure):
    """Compare the slowest GPU in training with the fastest of the node."""
    measure("training_spread", training.spread, at_most=limits.training_spread, unit="%", place=training.slowest)


@pytest.mark.fault("gpu.slow")
def test_gpu_trains_as_fast_as_the_fleet(gpu, training, node, limits, measure):
    """Compare the GPU's tokens per second with the median of other nodes of this kind."""
    below = 100 * (1 - training.of(gpu).tokens_per_s / node.fleet.training_speed.median)
    measure("below_fleet", below, at_most=limits.gpu_below_fleet, unit="%")
