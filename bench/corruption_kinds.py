"""Corruption that the battery does not know: 24 kinds in results, memory, copies, and on both sides of collectives.

`python -m bench.corruption_kinds` prints which share is seen, with 95 % intervals, and `--clean N` judges clean runs.
No function of `planted_faults` is used: kinds change arrays on their way through the numpy engine, on device `BAD`.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from assay.node.load.catalog import list_tests
from assay.node.load.digests import format_digest, make_key, sum_digest
from assay.node.load.engine import list_made_devices
from assay.node.load.lane import Lane
from assay.node.load.numpy_engine import NumpyArithmetic, NumpyEngine
from assay.node.load.planted_faults import HEALTHY
from assay.node.load.unit_tests import SMALL, BatteryTest
from assay.validate.active.run_verdict import RunVerdict, judge_run
from assay.validate.active.unit_results import LoadDevice, LoadRun, LoadUnit

DEVICES, BAD, NEIGHBOUR = 8, 5, 6
UNIT_TRIALS, VISITS = 100, 10
KIND = "NVIDIA H100 80GB HBM3"
Change = Callable[[random.Random, Any], Any]


def _words(change: Callable[[random.Random, Any], None]) -> Change:
    def apply(chance: random.Random, array: Any) -> Any:
        changed = np.array(array, copy=True)
        change(chance, changed.reshape(-1).view(np.uint32))
        return changed

    return apply


def _floats(change: Callable[[Any], Any]) -> Change:
    def apply(_: random.Random, array: Any) -> Any:
        view = array if array.dtype.kind == "f" else np.ascontiguousarray(array).view(np.float32)
        with np.errstate(all="ignore"):
            return np.ascontiguousarray(change(view).astype(view.dtype)).view(array.dtype).reshape(array.shape)

    return apply


def _flip(chance: random.Random, words: Any, bits: Sequence[int], count: int = 1, stride: int = 1) -> None:
    start, mask = chance.randrange(words.size), np.uint32(sum(1 << bit for bit in bits))
    for place in range(count):
        words[(start + place * stride) % words.size] ^= mask


def _move(chance: random.Random, words: Any, length: int, shift: int) -> None:
    start = chance.randrange(max(1, words.size - length - shift))
    words[start : start + length] = words[start + shift : start + shift + length].copy()


def _fill(chance: random.Random, words: Any, length: int, content: int) -> None:
    start = chance.randrange(max(1, words.size - length))
    words[start : start + length] = np.uint32(content)


def _swap(chance: random.Random, words: Any) -> None:
    one, other = chance.sample(range(words.size), 2)
    words[[one, other]] = words[[other, one]]


def _stick(words: Any, bit: int, up: bool) -> None:
    words[bit::32] = (
        words[bit::32] | np.uint32(1 << bit) if up else words[bit::32] & np.uint32(~(1 << bit) & 0xFFFFFFFF)
    )


def _tiny(x: Any) -> Any:
    return np.finfo(x.dtype).tiny


KINDS: Mapping[str, Change] = {
    "a low bit": _words(lambda chance, words: _flip(chance, words, [chance.randrange(8)])),
    "a high bit of the fraction": _words(lambda chance, words: _flip(chance, words, [chance.randrange(8, 23)])),
    "a bit of the exponent": _words(lambda chance, words: _flip(chance, words, [chance.randrange(23, 31)])),
    "the sign": _words(lambda chance, words: _flip(chance, words, [31])),
    "two bits of a word": _words(lambda chance, words: _flip(chance, words, chance.sample(range(32), 2))),
    "a bit in 8 words of a beat": _words(lambda chance, words: _flip(chance, words, [chance.randrange(32)], 8)),
    "a bit in each 32nd word": _words(lambda chance, words: _flip(chance, words, [chance.randrange(32)], 32, 32)),
    "a byte lane inverted": _words(lambda chance, words: _flip(chance, words, range(8, 16), 16)),
    "a bit stuck at 1 in a lane": _words(lambda chance, words: _stick(words, chance.randrange(32), up=True)),
    "a bit stuck at 0 in a lane": _words(lambda chance, words: _stick(words, chance.randrange(32), up=False)),
    "32 words zero": _words(lambda chance, words: _fill(chance, words, 32, 0)),
    "32 words all ones": _words(lambda chance, words: _fill(chance, words, 32, 0xFFFFFFFF)),
    "32 words of the line after": _words(lambda chance, words: _move(chance, words, 32, 32)),
    "a word of its neighbour": _words(lambda chance, words: _move(chance, words, 1, 1)),
    "two words swapped": _words(_swap),
    "all one place further": lambda _, array: np.roll(array.reshape(-1), 1).reshape(array.shape),
    "NaN for a number": _words(lambda chance, words: _fill(chance, words, 1, 0x7FC00000)),
    "NaN becomes 0": _floats(lambda x: np.where(np.isnan(x), x.dtype.type(0), x)),
    "infinity is clamped": _floats(lambda x: np.where(np.isinf(x), np.copysign(np.finfo(x.dtype).max, x), x)),
    "denormals flushed": _floats(lambda x: np.where(np.abs(x) < _tiny(x), np.copysign(x.dtype.type(0), x), x)),
    "-0 becomes 0": _floats(lambda x: np.where(x == 0, x.dtype.type(0), x)),
    "clamped at 1e17": _floats(lambda x: np.where(np.abs(x) > 1e17, np.copysign(x.dtype.type(1e17), x), x)),
    "rounded to 16 bits": _words(lambda _, words: np.bitwise_and(words, np.uint32(0xFFFF0000), out=words)),
    "the last bit cut off": _words(lambda _, words: np.bitwise_and(words, np.uint32(0xFFFFFFFE), out=words)),
}


@dataclass
class Share:
    """How many of the trials, with the interval that holds the true share in 95 of 100 cases (Wilson)."""

    hits: int = 0
    trials: int = 0

    def __str__(self) -> str:
        share, n, z = self.hits / self.trials, self.trials, 1.96
        middle, spread = share + z * z / (2 * n), z * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
        low, high = ((middle + sign * spread) / (1 + z * z / n) for sign in (-1, 1))
        return f"{100 * share:.0f} % ({100 * low:.0f}–{100 * high:.0f})"


class SpoilingEngine(NumpyEngine):
    """numpy, whose device `BAD` is changed as it sends (`side` send), receives, or copies to one neighbour (`copy`)."""

    def __init__(self, side: str, change: Callable[[Any], Any]) -> None:
        super().__init__(list_made_devices(DEVICES, (), [f"GPU-{place}" for place in range(DEVICES)], KIND))
        self.side, self.change = side, change

    def deliver(self, sent: Sequence[Any], place: int, join: Any) -> Any:
        """Spoil it on the way, as the fault says."""
        given = list(sent)
        if self.side == "send" or (self.side == "copy" and place == NEIGHBOUR):
            given[BAD] = self.change(given[BAD])
        received = join(given, place)
        return self.change(received) if self.side == "receive" and place == BAD else received


def _list_able(devices: int) -> list[BatteryTest]:
    engine = NumpyEngine(list_made_devices(devices, (), (), ""))
    return [test for test in list_tests(SMALL, devices) if not engine.find_lack(test)]


def judge_visit(engine: NumpyEngine, tests: Sequence[BatteryTest], seeds: Sequence[int]) -> RunVerdict:
    """Return the verdict on one run of some tests."""
    units = []
    for seed in seeds:
        for test in tests:
            key = make_key(test.keyed_as or test.name, seed)
            result = engine.run_unit(test, key, [HEALTHY] * engine.device_count)
            units.append(LoadUnit(test.name, str(seed), tuple(format_digest(each or 0) for each in result.digests)))
    devices = tuple(LoadDevice(place, f"GPU-{place}", KIND) for place in range(engine.device_count))
    return judge_run(LoadRun(devices, tuple(units)))


def measure_units(kind: str, tests: Sequence[BatteryTest]) -> Share:
    """Return the share of single wrong units that are seen; each test as often as any other."""
    share, chance = Share(), random.Random(kind)  # noqa: S311 — a simulation
    for trial in range(UNIT_TRIALS):
        test = chance.choice(tests)
        key = np.array([make_key(test.keyed_as or test.name, trial % 3)], np.uint32)
        lane = Lane(NumpyArithmetic(), key, np.array(HEALTHY, np.uint32))
        with np.errstate(all="ignore"):
            held = test.compute(lane)
            spoilt = KINDS[kind](chance, held)
            for stage in test.stages:
                held, spoilt = stage(lane, held), stage(lane, spoilt)
        share.trials += 1
        share.hits += bool(sum_digest(np, held) != sum_digest(np, spoilt))
    return share


def measure_visits(kind: str, side: str, tests: Sequence[BatteryTest]) -> tuple[Share, int]:
    """Return the share of visits in which transfers show it, and in how many an innocent GPU was called guilty."""
    share, falsely = Share(), 0
    for visit in range(VISITS):
        chance = random.Random(f"{kind} {side} {visit}")  # noqa: S311 — a simulation
        engine = SpoilingEngine(side, lambda array, chance=chance: KINDS[kind](chance, array))
        verdict = judge_visit(engine, tests, [visit])
        guilty = {place for place in range(DEVICES) if verdict.find_wrong_units(place)}
        share.trials += 1
        share.hits += bool(guilty or verdict.suspicions)
        falsely += bool(guilty - {BAD})
    return share, falsely


def count_clean_accusations(runs: int, devices: int = DEVICES) -> int:
    """Return in how many clean runs of the whole battery, each with a seed of its own, anything was said of a GPU."""
    engine, tests, accused = NumpyEngine(list_made_devices(devices, (), (), "")), _list_able(devices), 0
    for seed in range(runs):
        verdict = judge_visit(engine, tests, [seed])
        accused += any(vote.wrong or vote.suspects or not vote.is_told for vote in verdict.votes)
    return accused


def format_rates() -> str:
    """Return the table of rates, in Markdown."""
    every = [test for test in _list_able(DEVICES) if not test.spoils_itself]
    sent = [test for test in every if test.name.startswith(("copy.", "collective."))]
    memory = [test for test in every if test.name.startswith("memory.")]
    computed = [test for test in every if test not in sent and test not in memory]
    lines = ["| corruption | compute, a unit | memory, a unit | copy | send | receive |", "|---|---|---|---|---|---|"]
    falsely = 0
    for kind in KINDS:
        cells = [measure_units(kind, computed), measure_units(kind, memory)]
        for side in ("copy", "send", "receive"):
            share, wrong = measure_visits(kind, side, sent)
            cells.append(share)
            falsely += wrong
        lines.append(f"| {kind} | {' | '.join(map(str, cells))} |")
    return "\n".join([*lines, "", f"Innocent GPUs called guilty in {3 * len(KINDS) * VISITS} visits: {falsely}."])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--clean", type=int, default=0, metavar="N")
    asked = parser.parse_args()
    text = (
        f"accused in {asked.clean} clean runs: {count_clean_accusations(asked.clean)}"
        if asked.clean
        else format_rates()
    )
    sys.stdout.write(f"{text}\n")
