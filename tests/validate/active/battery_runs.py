"""Runs of a battery, made as a node records them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assay.model.reading import value
from assay.validate.active.unit_results import LoadRun, read_load_run

H100 = "NVIDIA H100 80GB HBM3"
KEY = {"engine": "jax 0.10.2", "backend": "cuda", "driver": "580.95.05", "runtime": "CUDA 13.0", "program": "ab" * 32}


def make_branch(
    units: Mapping[str, Any], kinds: Sequence[str] = (H100,) * 8, said: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return `active.battery` with these units, by test and seed."""
    devices = [{"index": index, "uuid": f"GPU-{index}", "kind": kind} for index, kind in enumerate(kinds)]
    head = {name: value(text) for name, text in KEY.items()}
    return {**head, "devices": value(devices), "ended": value("done"), "units": value(dict(units)), **(said or {})}


def make_run(
    units: Mapping[str, Any], kinds: Sequence[str] = (H100,) * 8, said: Mapping[str, Any] | None = None
) -> LoadRun:
    """Return the run that such a branch holds."""
    return read_load_run(make_branch(units, kinds, said))
