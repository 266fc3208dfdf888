"""Planted faults: what a test of the battery's own judges writes into results. They are arguments of the same program.

A healthy device has `HEALTHY`, whose masks change no bit. Shapes follow what is published of GPUs: single bits, bursts
of 32 neighbours (the threads of a warp), NaN, and stuck bits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from typing import Any

from assay.node.load.digests import view_words

WARP = 32
NOT_A_NUMBER = 0x7FC00000
HEAT_UNITS = 100  # after so many units, a fault by heat is at its full rate
KINDS = ("flip", "burst", "nan", "permanent", "heat", "slow", "hang", "freeze", "vanish")
SILENT_KINDS = ("hang", "freeze", "vanish")
SIDES = ("result", "send")
FaultWords = tuple[int, int, int, int, int, int]
"""Start, stride and count of the words that are hit; the mask to flip and the mask to set; the place in `SIDES`."""
HEALTHY: FaultWords = (0, 1, 0, 0, 0, 0)
_CONVERT: dict[str, Any] = {"int": int, "float": float, "str": str}


@dataclass(frozen=True)
class PlantedFault:
    """One fault of one device. `bit` < 0: another bit each time; `at` < 0: another word each time.

    `rate`: the share of units that it hits. `after`: the first unit that it may hit, as `from` in the text. `words`
    and `stride`: how many results are hit, and how far apart. `factor`: how many times as long a slow device takes.
    `side`: hits what the device computed or received (`result`), or what it sends to others (`send`).
    """

    device: int
    kind: str = "flip"
    test: str = "*"
    bit: int = -1
    at: int = -1
    words: int = 1
    stride: int = 1
    rate: float = 1.0
    after: int = 0
    factor: float = 10.0
    side: str = "result"

    def covers(self, test: str) -> bool:
        """Whether it is planted into this test: by name, by the name's beginning, or by pattern."""
        return test == self.test or test.startswith(f"{self.test}.") or fnmatchcase(test, self.test)

    def hits(self, device: int, test: str, unit: int) -> bool:
        """Whether it hits this unit of the run, counted from 0."""
        if device != self.device or unit < self.after or not self.covers(test):
            return False
        rate = self.rate * min(1.0, (unit - self.after) / HEAT_UNITS) if self.kind == "heat" else self.rate
        return _draw(f"hit/{device}/{test}/{unit}") < rate * 2**32

    def find_words(self, test: str, unit: int) -> FaultWords:
        """Return the argument of the program for a unit that it hits."""
        lasting = self.kind == "permanent"
        start = self.at if self.at >= 0 else _draw(f"at/{self.device}/{test}/{0 if lasting else unit}")
        bit = self.bit if self.bit >= 0 else _draw(f"bit/{self.device}/{0 if lasting else unit}") % 32
        count = WARP if self.kind == "burst" else self.words
        side = SIDES.index(self.side)
        if self.kind == "nan":
            return start, self.stride, count, 0, NOT_A_NUMBER, side
        if lasting:  # a stuck bit: seen only where the right bit is 0
            return start, self.stride, count, 0, 1 << bit, side
        return start, self.stride, count, 1 << bit, 0, side


def parse_plant(text: str) -> PlantedFault:
    """Parse `device=5,test=gemm.float32,bit=3,rate=0.02`. Raises ValueError, with what to write, for anything else."""
    given = dict(part.partition("=")[::2] for part in text.split(","))
    if "from" in given:
        given["after"] = given.pop("from")
    types = {field.name: field.type for field in fields(PlantedFault)}
    unknown = sorted(set(given) - set(types))
    if unknown or "device" not in given:
        names = ", ".join("from" if name == "after" else name for name in types)
        raise ValueError(f"--plant {text!r}: write device=N and any of {names}, as in device=5,bit=3,rate=0.02")
    if given.get("kind", "flip") not in KINDS:
        raise ValueError(f"--plant {text!r}: kind is one of {', '.join(KINDS)}")
    if given.get("side", "result") not in SIDES:
        raise ValueError(f"--plant {text!r}: side is one of {', '.join(SIDES)}")
    try:
        made = {name: _CONVERT[str(types[name])](content) for name, content in given.items()}
    except ValueError as error:
        raise ValueError(f"--plant {text!r}: {error}") from None
    fault = PlantedFault(**made)
    if not (fault.bit < 32 and 0 <= fault.rate <= 1 and fault.words > 0 and fault.stride > 0 and fault.factor > 0):
        raise ValueError(f"--plant {text!r}: bit is below 32, rate from 0 to 1, words, stride and factor above 0")
    return fault


def refuse_misses(faults: Sequence[PlantedFault], devices: Sequence[int], tests: Sequence[str]) -> None:
    """Raise ValueError for a fault that can hit nothing in this run: no such device, or no such test."""
    for fault in faults:
        if fault.device not in devices:
            raise ValueError(
                f"--plant device={fault.device}: the run has the devices {', '.join(map(str, sorted(devices)))}"
            )
        if not any(map(fault.covers, tests)):
            begin = ", ".join(sorted({test.partition(".")[0] for test in tests}))
            raise ValueError(f"--plant test={fault.test}: no test of the run is called so; they begin with {begin}")


def find_fault_words(faults: Sequence[PlantedFault], device: int, test: str, unit: int) -> FaultWords:
    """Return the program's argument for one device: the first fault that changes bits in this unit, or `HEALTHY`."""
    for fault in faults:
        if fault.kind not in (*SILENT_KINDS, "slow") and fault.hits(device, test, unit):
            return fault.find_words(test, unit)
    return HEALTHY


def find_silence(faults: Sequence[PlantedFault], device: int, test: str, unit: int) -> str:
    """Return the kind of the fault by which a device gives no digest in this unit, "" if it gives one."""
    hitting = (fault for fault in faults if fault.kind in SILENT_KINDS and fault.device == device)
    for fault in hitting:
        gone = fault.kind == "vanish" and unit >= fault.after and fault.rate > 0
        if gone or fault.hits(device, test, unit):
            return fault.kind
    return ""


def find_slowness(faults: Sequence[PlantedFault], device: int, test: str, unit: int) -> float:
    """Return how many times as long this device says that the unit took. Nobody waits: the time is told."""
    factors = [fault.factor for fault in faults if fault.kind == "slow" and fault.hits(device, test, unit)]
    return max(factors, default=1.0)


def apply_fault(xp: Any, array: Any, words: Any, side: str) -> Any:
    """Return `array` with the fault of `words` (uint32 array of six) in it; the same bits if it hits another side."""
    bits = view_words(xp, array)
    start, stride, count, flip, put, hit_side = (words[index] for index in range(6))
    away = xp.arange(bits.size, dtype=xp.uint32) - start % xp.uint32(bits.size)
    hit = (away % stride == 0) & (away // stride < count) & (hit_side == SIDES.index(side))
    spoilt = xp.where(hit, (bits ^ flip) | put, bits)
    return spoilt.view(array.dtype).reshape(array.shape)


def _draw(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")
