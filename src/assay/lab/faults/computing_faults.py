"""Faults of GPUs that only show in what they compute. A docstring is the line of `assay lab inject`."""

# ruff: noqa: ARG001 — all faults take the same arguments; not every fault needs the time
from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Literal

from assay.lab.virtual_node_state import VirtualNodeState

EVERY_TEST = "*"


def gpu_computes_wrong(
    state: VirtualNodeState,
    now: datetime,
    gpu: int,
    kind: Literal["permanent", "flip", "burst", "nan", "heat"] = "permanent",
    test: str = EVERY_TEST,
    bit: int = 3,
    rate: float = 1.0,
) -> None:
    """A GPU with wrong results: always the same bit, a flipped bit, 32 neighbours, NaN, or more and more with heat."""
    chosen = "" if kind in ("nan", "heat") else f",bit={bit}"
    _plant(state, gpu, f"kind={kind},test={test},rate={rate}{chosen}")


def gpu_computes_slowly(state: VirtualNodeState, now: datetime, gpu: int, factor: float = 3.0) -> None:
    """A GPU that takes `factor` times as long as the others for every result."""
    _plant(state, gpu, f"kind=slow,factor={factor}")


def gpu_hangs(state: VirtualNodeState, now: datetime, gpu: int, units: int = 20) -> None:
    """A GPU that hangs after so many results under load; the run stops there."""
    _plant(state, gpu, f"kind=hang,from={units}")


def gpu_gives_nothing(state: VirtualNodeState, now: datetime, gpu: int, units: int = 0) -> None:
    """A GPU that gives no more results after `units` of them, while the others go on."""
    _plant(state, gpu, f"kind=vanish,from={units}")


def _plant(state: VirtualNodeState, gpu: int, text: str) -> None:
    slot = state["gpus"][gpu]
    slot["computes"] = [*slot.get("computes", []), text]


COMPUTING_FAULTS: Mapping[str, Callable[..., None]] = {
    "gpu.computes-slowly": gpu_computes_slowly,
    "gpu.computes-wrong": gpu_computes_wrong,
    "gpu.gives-nothing": gpu_gives_nothing,
    "gpu.hangs": gpu_hangs,
}
