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
GOLDEN_PARTS: tuple[LoadPart, ...] = (
    "battery",
    "training",
    "training_data_parallel",
    "training_tensor_parallel",
    "site_training",
)
"""The parts whose results are digests, which can be golden."""
GoldenKind = Literal["battery", "training"]
GOLDEN_FIXTURES: dict[str, GoldenKind] = {
    "battery": "battery",
    "training": "training",
    "data_parallel": "training",
    "tensor_parallel": "training",
    "site_training": "training",
}
"""The golden digests that a check is judged by, by its fixture."""
LEAST_SECONDS: dict[LoadPart, int] = {"dcgm_diag_2": 120, "dcgm_diag_3": 900, "dcgm_diag_4": 2700}
"""How long those parts take at least that run for as long as they like.

NVIDIA's DCGM documentation: level 2 about 2 min; AWS measured level 3 from 15 min, and level 4 from 45 min.
"""


def find_least_seconds(part: LoadPart, seconds: float) -> float:
    """Return how long a part takes at least, if it is told to load the node for so many seconds."""
    return float(LEAST_SECONDS.get(part, seconds))
