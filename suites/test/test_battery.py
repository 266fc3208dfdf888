"""The GPUs compute right: each gives the same bits as its peers, and as healthy GPUs of its kind."""

import pytest

pytestmark = [pytest.mark.phase("test"), pytest.mark.active]


@pytest.mark.phase("test", "confirm")
@pytest.mark.fault("gpu.sdc")
def test_gpu_computes_as_its_peers(gpu, battery, limits, measure):
    """Compare every result of the GPU with those of the node's other GPUs, bit by bit; the guilty one is wrong."""
    results = battery.of(gpu)
    measure("wrong_units", results.wrong_units, at_most=0, unit="count", place=results.wrong)
    results.require_told(limits.battery_units)


@pytest.mark.fault("gpu.sdc.suspect")
def test_nothing_is_wrong_that_several_parts_explain(battery, measure):
    """Count wrong results of which several parts can be guilty: GPUs that disagree, a sender, a receiver or the way."""
    measure("suspect_units", battery.suspect_units, at_most=0, unit="count", place=battery.suspects)


@pytest.mark.fault("gpu.silent")
def test_gpu_gives_every_result(gpu, battery, measure):
    """Count the results that the GPU did not give although others did."""
    measure("silent_units", battery.of(gpu).silent_units, at_most=0, unit="count")


@pytest.mark.fault("gpu.sdc")
def test_node_agrees_with_golden_digests(battery, measure):
    """Compare the results with the golden digests of healthy GPUs: all GPUs of a node may be wrong in the same way."""
    measure("golden_units", battery.golden_units, at_least=1, unit="count")


@pytest.mark.fault("gpu.silent")
def test_enough_units_ran(battery, limits, measure):
    """Count the results of the node: without a wrong one among many, a GPU is not known to compute right."""
    measure("battery_units", battery.units, unit="count")
    battery.require_units(battery.units, limits.battery_units)


@pytest.mark.fault("gpu.burn.failed")
def test_gpus_compute_alike_fast(battery, limits, measure):
    """Compare the slowest GPU in the battery with the fastest of the node."""
    measure("battery_spread", battery.spread, at_most=limits.battery_spread, unit="%", place=battery.slowest)
