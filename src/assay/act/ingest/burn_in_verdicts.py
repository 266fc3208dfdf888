"""Lets the GPUs of a node vote on every run of the battery and of training that a burn-in wrote down."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from assay.validate.active.run_verdict import judge_run
from assay.validate.active.unit_results import UnreadableRun, read_load_run
from assay.validate.active.windows import Line

VOTED_PARTS = frozenset({"battery", "training", "training_data_parallel", "training_tensor_parallel"})
"""The load parts whose results hold digests of each GPU."""
OUTVOTED_FAULT = "gpu.sdc"
"""The fault of such a GPU, as of the checks that compare digests: the policy may ask its GPUs again."""


def find_outvoted_gpu(lines: Sequence[Line]) -> str:
    """Return the first GPU that was outvoted, and by whom, "" for none. What cannot be told is no verdict."""
    return next(_list_outvoted(lines), "")


def _list_outvoted(lines: Sequence[Line]) -> Iterator[str]:
    for line in lines:
        if line.get("unit") not in VOTED_PARTS:
            continue
        try:
            run = read_load_run(line["result"])
        except UnreadableRun:  # it counts as a run without a result
            continue
        verdict, names = judge_run(run), {place: f"gpu{one.index}" for place, one in enumerate(run.devices)}
        for place, name in names.items():
            if wrong := verdict.find_wrong_units(place):
                yield f"{name}: {line['unit']} computed {len(wrong.units)} units wrong {wrong.describe(names)}"
