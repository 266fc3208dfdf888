"""The smallest suite."""


def test_heat(gpu, limits):
    assert gpu.heat < limits.gpu_temperature
