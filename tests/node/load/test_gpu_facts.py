"""Which GPU is which: CUDA's devices by nvidia-smi's rows."""

from __future__ import annotations

from assay.node.load.engine import GpuFacts, choose_visible, parse_gpus

ROWS = "0, GPU-aaa1, 580.65.06\n1, GPU-bbb2, 580.65.06\n2, [Unknown Error], \nNVIDIA-SMI has failed\n"


def test_each_row_is_a_gpu_and_other_lines_are_none() -> None:
    assert parse_gpus(ROWS)[:2] == [GpuFacts(0, "GPU-aaa1", "580.65.06"), GpuFacts(1, "GPU-bbb2", "580.65.06")]


def test_visible_devices_are_named_by_index_or_uuid_and_end_at_an_unknown_one() -> None:
    gpus = parse_gpus(ROWS)[:2]
    assert [gpu.index for gpu in choose_visible(gpus, "1,0")] == [1, 0]
    assert [gpu.index for gpu in choose_visible(gpus, "GPU-bbb")] == [1]
    assert [gpu.index for gpu in choose_visible(gpus, "1,7,0")] == [1]
    assert choose_visible(gpus, "") == gpus
