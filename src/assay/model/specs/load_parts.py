"""The parts of a node; and of a load: what can be run on a node, by the name of its branch below `active`."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Literal, get_args

PieceOfNode = Literal["gpus", "hcas", "nics", "nvme", "disks", "psus", "fans"]
DeclaredOfNode = Literal[
    "product", "cpu_sockets", "cpu_threads", "memory_gib", "driver", "firmware", "mounts", "node_power", "tpm"
]
ToolOfSite = Literal["storage", "training"]
KindOfPart = Literal["nvidia", "amd", "infiniband", "roce"]
NodePart = Literal[PieceOfNode, DeclaredOfNode, ToolOfSite, KindOfPart, "nvlink", "bmc", "bmc_network", "fabric"]
"""What a node may have or lack: fields of its NodeSpec, their kinds, NVLink, its BMC, its fabric.

`storage` and `training` are what the inventory declares of them in `load_tools`.
"""
TOOLS_OF_SITE: frozenset[str] = frozenset(get_args(ToolOfSite))

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
    "shared_storage",
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
EVERY_TEST = "all"
"""No test of the battery has this name: after `SEED:all`, it goes on with the next seed."""
GOLDEN_PARTS: tuple[LoadPart, ...] = (
    "battery",
    "training",
    "training_data_parallel",
    "training_tensor_parallel",
    "site_training",
)
"""The parts whose results are digests, which can be golden."""
PART_NEEDS: dict[LoadPart, tuple[NodePart, ...]] = {
    **dict.fromkeys(LOAD_PARTS, ("nvidia",)),
    "nvme_read": ("nvme",),
    "fio_verify": ("nvme",),
    "shared_storage": ("storage",),
    "memory": (),
    "stressapptest": (),
    "ib_write_bw": ("hcas",),
    "ib_write_bw_gpu": ("hcas", "nvidia"),
    "front_end": ("nics",),
    "hpl": ("gpus",),
    "site_training": ("gpus", "training"),
}
"""What a node must have for a part: most tools run on NVIDIA GPUs only. HPL and its own training a site brings."""


def find_lacking_part(needs: Iterable[str], parts: Collection[str]) -> str:
    """Return the first part that a node with these parts lacks, "" if it has all."""
    return next((need for need in needs if need not in parts), "")


def select_possible(load: Iterable[LoadPart], parts: Collection[str]) -> list[LoadPart]:
    """Return the parts of a load that a node with these parts can run."""
    return [part for part in load if not find_lacking_part(PART_NEEDS[part], parts)]


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
