"""The units of measurements and limits: a closed vocabulary, so that GB/s cannot be confused with Gb/s."""

from __future__ import annotations

from difflib import get_close_matches
from functools import lru_cache
from typing import NamedTuple


class MeasurementUnit(NamedTuple):
    """One unit: the dimension that it measures, and its factor to the dimension's base unit."""

    symbol: str
    dimension: str
    factor: float


# Decimal prefixes are powers of 1000 and binary ones of 1024 (ISO/IEC 80000-13); a byte is eight bits.
_DIMENSIONS: dict[str, dict[str, float]] = {
    "a data rate": {
        "Mb/s": 1e6,
        "Gb/s": 1e9,
        "Tb/s": 1e12,
        "MB/s": 8e6,
        "GB/s": 8e9,
        "TB/s": 8e12,
        "MiB/s": 8 * 2**20,
        "GiB/s": 8 * 2**30,
    },
    "an amount of data": {"B": 1, "MB": 1e6, "GB": 1e9, "TB": 1e12, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40},
    "a computing speed": {"Gflop/s": 1e9, "Tflop/s": 1e12},
    "a time": {"µs": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600},
    "a frequency": {"Hz": 1, "MHz": 1e6, "GHz": 1e9},
    "a power": {"mW": 1e-3, "W": 1, "kW": 1e3},
    "a voltage": {"mV": 1e-3, "V": 1},
    "a current": {"mA": 1e-3, "A": 1},
    "an optical power": {"dBm": 1},
    "a temperature": {"°C": 1},
    "a speed of rotation": {"rpm": 1},
    "a share": {"%": 1},
    "a number of things": {"count": 1},
    "a rate of events": {"count/day": 1 / 24, "count/h": 1, "count/min": 60},
    "a distance from peers": {"deviations": 1},
    "a ratio of powers": {"dB": 1},
    "a number of powers of ten": {"decades": 1},
    "a bit error ratio": {"errors/bit": 1},
    "a number of lanes": {"lanes": 1},
    "a number of links": {"links": 1},
    "a number of memory rows": {"rows": 1},
    "a generation": {"generation": 1},
    "a rate of transfers": {"MT/s": 1},
    "a speed of training": {"tokens/s": 1},
}
UNITS = {
    symbol: MeasurementUnit(symbol, dimension, factor)
    for dimension, symbols in _DIMENSIONS.items()
    for symbol, factor in symbols.items()
}

# The last words in the names of readings, such as `bus_bandwidth_gb_s` and `limit_w`, and the units that they mean.
READING_SUFFIXES = {
    "gb_s": "GB/s", "mb_s": "MB/s", "gib_s": "GiB/s", "gbps": "Gb/s", "mbps": "Mb/s",
    "bytes": "B", "gb": "GB", "gib": "GiB", "tb": "TB", "gflops": "Gflop/s", "tflops": "Tflop/s",
    "us": "µs", "ms": "ms", "s": "s", "mhz": "MHz", "w": "W", "mv": "mV", "v": "V", "ma": "mA", "a": "A",
    "dbm": "dBm", "c": "°C", "mts": "MT/s", "tokens_per_s": "tokens/s",
    "rpm": "rpm", "percent": "%",
}  # fmt: skip
_WORDS = {
    word: symbol
    for symbol, words in {
        "°C": ("c", "degc", "deg c", "℃", "celsius", "º c", "ºc"),
        "W": ("watt", "watts"),
        "kW": ("kilowatt",),
        "V": ("volt", "volts", "vac"),
        "A": ("amp", "amps"),
        "%": ("percent", "pct"),
        "s": ("sec", "secs", "seconds"),
        "µs": ("us", "μs"),
        "h": ("hours",),
        "min": ("minutes",),
        "B": ("bytes",),
        "Gflop/s": ("gflops", "gflop"),
        "Tflop/s": ("tflops", "tflop"),
        "count": ("counts", "errors"),
        "lanes": ("lane", "x"),
        "links": ("link",),
        "rows": ("row",),
        "generation": ("gen", "generations"),
    }.items()
    for word in words
}
_PER_SECOND = (("bits/s", "b/s"), ("bit/s", "b/s"), ("bytes/s", "B/s"), ("byte/s", "B/s"), ("ps", "/s"), ("/sec", "/s"))


@lru_cache(4096)
def find_unit_in_name(name: str) -> str:
    """Return the unit at the end of a reading's name: `W` for `limit_w`; "" if it has none."""
    words = name.split("_")
    suffixes = ("_".join(words[-3:]), "_".join(words[-2:]), words[-1])
    return next((READING_SUFFIXES[suffix] for suffix in suffixes if suffix in READING_SUFFIXES), "")


def suggest_units(symbol: str) -> list[str]:
    """Return the units that an unknown `symbol` may stand for, best first; an empty list if none is close."""
    written = symbol.strip()
    for long, short in _PER_SECOND:
        written = written.removesuffix(long) + short if written.endswith(long) else written
    if written in UNITS:
        return [written]
    folded = written.casefold()
    if folded in _WORDS:
        return [_WORDS[folded]]
    return [known for known in UNITS if known.casefold() == folded] or get_close_matches(symbol, UNITS, n=1)


def describe_unit_fix(symbol: str) -> str:
    """Return the advice for a unit that is not in the vocabulary: what to write instead."""
    near = suggest_units(symbol)
    if len(near) > 1 and near[0].endswith("/s"):
        return "write " + " or ".join(f"{unit} ({'bytes' if 'B' in unit else 'bits'})" for unit in near)
    return f"write {' or '.join(near)}" if near else f"use one of {', '.join(UNITS)}"


def convert_unit(value: float, unit: str, into: str) -> float | None:
    """Return a value in another unit, None if the two units measure different dimensions."""
    source, target = UNITS[unit], UNITS[into]
    return value * source.factor / target.factor if source.dimension == target.dimension else None
