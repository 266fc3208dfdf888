"""The parts of a load: what can be run on a node to prove it, by the name of its branch below `active`."""

from __future__ import annotations

from typing import Literal, get_args

LoadPart = Literal[
    "all_reduce",
    "gpu_burn",
    "nvme_read",
    "memory",
    "dcgm_diag_1",
    "dcgm_diag_2",
    "dcgm_diag_3",
    "dcgm_diag_4",
    "dcgm_mndiag",
    "ubergemm",
    "dcgmproftester",
    "gpu_fryer",
    "nvbandwidth",
    "ib_write_bw",
    "ib_write_bw_gpu",
    "fio_verify",
    "stressapptest",
    "hpl",
    "front_end",
    "battery",
    "training",
    "training_data_parallel",
    "training_tensor_parallel",
    "site_training",
]
LOAD_PARTS: tuple[LoadPart, ...] = get_args(LoadPart)
USUAL_PARTS: tuple[LoadPart, ...] = ("all_reduce", "gpu_burn", "nvme_read", "memory", "battery")
"""What a state that requires active checks runs, if its policy names no parts."""
