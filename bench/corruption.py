"""Silent corruption: the share of planted faults that each comparison of devices sees.

`python -m bench.corruption` prints them as two tables.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from assay.node.load.digests import make_key
from assay.node.load.planted_faults import HEALTHY
from bench.corruption_trials import (
    BAD,
    LOSS_MOVED,
    SHAPES,
    TESTS,
    UNITS,
    Share,
    differs_by_tolerance,
    digest_unit,
    flip_any_bit,
    make_lane,
    name_by_vote,
    train_steps,
)
from bench.measurement import Measurement

TRIALS = 60
RATES, STEPS, RATE_TRIALS = (0.02, 0.05), 100, 40
OLD = "product, against its own first, by 0.001"
LOSS = "loss moved by 0.1 %"
Table = dict[str, dict[str, Share]]


def measure_shapes() -> tuple[Table, int]:
    """Return, by shape of fault and way to look, the share that is seen; and how often a healthy one was named."""
    table: Table = {shape: {way: Share() for way in (*UNITS, LOSS, OLD)} for shape in SHAPES}
    falsely = 0
    with np.errstate(all="ignore"):
        for shape, draw in SHAPES.items():
            for trial in range(TRIALS):
                chance = random.Random(f"{shape} {trial}")  # noqa: S311 — a simulation
                fault = draw(chance)
                for way, name in UNITS.items():
                    healthy, spoilt = (digest_unit(TESTS[name], trial, one) for one in (HEALTHY, fault))
                    named = name_by_vote(name, trial, healthy, spoilt)
                    table[shape][way].add(hit=named == {BAD})
                    falsely += bool(named - {BAD})
                (before,), (after,) = (train_steps([one], trial)[1] for one in (HEALTHY, fault))
                table[shape][LOSS].add(hit=not abs(after - before) <= LOSS_MOVED * before)
                product = TESTS[UNITS["product"]]
                first = fault if "always" in shape else HEALTHY
                key = make_key(product.name, trial)
                results = [product.first_stage(make_lane(key, one)) for one in (first, fault)]
                table[shape][OLD].add(hit=differs_by_tolerance(results[0], results[1]))
    return table, falsely


def measure_rates(seen_in_step: float) -> dict[float, tuple[float, float]]:
    """Return, by rate a step, the percentage found in 100 steps that carry their state, and what the formula says."""
    found = {}
    with np.errstate(all="ignore"):
        golden = [train_steps([HEALTHY] * STEPS, seed)[0] for seed in range(2)]
        for rate in RATES:
            share = Share()
            for trial in range(RATE_TRIALS):
                chance = random.Random(f"{rate} {trial}")  # noqa: S311 — a simulation
                faults = [flip_any_bit(chance) if chance.random() < rate else HEALTHY for _ in range(STEPS)]
                share.add(hit=train_steps(faults, trial % 2)[0] != golden[trial % 2])
            found[rate] = share.percent, 100 * (1 - (1 - rate * seen_in_step) ** STEPS)
    return found


def share_of_flips(table: Table, way: str) -> float:
    """Return the share, 0 to 1, of flips of any one bit, each of the 32 equally often."""
    bits = {"bits 0–7": 8, "bits 8–14": 7, "bits 15–22": 8, "bits 23–30 (exponent)": 8, "bit 31 (sign)": 1}
    return sum(count * table[shape][way].percent for shape, count in bits.items()) / 32 / 100


def measurements(folder: Path) -> Iterator[Measurement]:
    """Yield what is seen of the faults of each kind, and how often a healthy device is named."""
    del folder
    table, falsely = measure_shapes()
    for way in UNITS:
        flips = 100 * share_of_flips(table, way)
        bound = 40 if "step" in way else 99
        figures = {shape: ways[way].percent for shape, ways in table.items()}
        yield Measurement(f"corruption, {way}: flipped bits seen", flips, "%", "at least", bound, figures)
    yield Measurement("corruption: healthy devices named", falsely, "", "at most", 0)
    stuck = table["a stuck bit, always"]
    more = stuck["product"].percent - stuck[OLD].percent
    yield Measurement("corruption, stuck bits: seen more than by a GPU's own first", more, "points", "at least", 30)


def format_tables() -> str:
    """Return the two tables, in Markdown."""
    table, falsely = measure_shapes()
    ways = (*UNITS, LOSS, OLD)
    lines = [f"| planted | {' | '.join(ways)} |", f"|---|{'---|' * len(ways)}"]
    for shape, seen in table.items():
        lines.append(f"| {shape} | {' | '.join(f'{seen[way].percent:.0f} %' for way in ways)} |")
    lines += [
        "",
        f"{TRIALS} trials a cell. Healthy devices named: {falsely} times.",
    ]
    seen_in_step = share_of_flips(table, "one step")
    lines += [
        "",
        f"| probability p of a hit in a step | found in {STEPS} steps | 1 − (1 − p·v)^{STEPS} |",
        "|---|---|---|",
    ]
    for rate, (percent, formula) in measure_rates(seen_in_step).items():
        lines.append(f"| {rate} | {percent:.0f} % of {RATE_TRIALS} | {formula:.0f} % |")
    lines += ["", f"v, the share of flips of one bit that one step shows, is {seen_in_step:.2f} here."]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(f"{format_tables()}\n")
