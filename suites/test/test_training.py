"""The GPUs train right: the same batch gives the same bits on each of them, step by step, and takes as long."""

import pytest

pytestmark = [pytest.mark.phase("test"), pytest.mark.active]


@pytest.mark.fault("gpu.sdc")
def test_gpu_trains_as_its_peers(gpu, training, limits, measure):
    """Compare the GPU's state after each step with that of its peers: a wrong number stays in all later steps."""
    results = training.of(gpu)
    measure("wrong_steps", results.wrong_units, at_most=0, unit="count", place=results.wrong)
    results.require_told(limits.training_steps)


@pytest.mark.fault("gpu.burn.failed")
def test_gpus_train_alike_fast(training, limits, measure):
    """Compare the slowest GPU in training with the fastest of the node."""
    measure("training_spread", training.spread, at_most=limits.training_spread, unit="%", place=training.slowest)
