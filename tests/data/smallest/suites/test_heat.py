"""The smallest suite."""

import pytest


@pytest.mark.phase("production")
@pytest.mark.fault("gpu.hot")
def test_heat(gpu, limits):
    assert gpu.heat < limits.gpu_temperature
