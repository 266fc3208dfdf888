"""Compares the GPUs of a burn-in with all GPUs of their kind that were burned in before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from assay.model.specs.burn_in_spec import DriftRules
from assay.model.specs.burn_in_window import BurnInWindow


def compute_gpu_rates(windows: Sequence[BurnInWindow]) -> dict[str, float]:
    """Return the median Gflop/s of each GPU over a burn-in, by subject."""
    rates: dict[str, list[float]] = {}
    for window in windows:
        for subject, medians in window.gpus.items():
            if "gflops" in medians:
                rates.setdefault(subject, []).append(medians["gflops"])
    return {subject: round(median(found), 1) for subject, found in sorted(rates.items())}


def list_slow_gpus(rules: DriftRules, rates: Mapping[str, float], others: Sequence[float]) -> Iterator[str]:
    """Yield a line for each GPU that is slower than its kind. `others`: the rates of other nodes' GPUs of the kind."""
    if len(others) < rules.fleet_gpus_at_least:
        return
    middle = median(others)
    floor = middle * (1 - rules.fleet_below_percent / 100)
    for subject, rate in rates.items():
        if rate < floor:
            rank = sum(other < rate for other in others) + 1
            share = f"{100 * (rate / middle - 1):+.1f} % of the median {middle:.0f} of {len(others)} GPUs"
            yield f"{subject}: {rate:.0f} Gflop/s, {share}; rank {rank} from below"
