"""A lane: what one device computes with. Tests see lanes only, so that one text of mathematics runs in every engine."""

from __future__ import annotations

from typing import Any, Protocol

from assay.node.load.digests import hash_counters
from assay.node.load.planted_faults import apply_fault

LIMIT_WORDS = (
    *(0x7FC00000, 0x7F800001, 0x7F800000, 0xFF800000, 0x80000000, 0x00000000),  # NaN, a signalling one, ±Inf, ±0
    *(0x00000001, 0x807FFFFF, 0x00800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7E967699),  # denormals, smallest, ±largest, 1e38
)
"""Bits of float32 numbers at the limits of the type."""


class Arithmetic(Protocol):
    """What engines spell differently. All other operations are those that numpy and JAX share, found in `xp`.

    `narrow` rounds float32 to a named type. `product` multiplies two narrowed matrices; the sums are float64 for
    float64, int32 for int8, else float32.
    """

    xp: Any

    def narrow(self, array: Any, dtype: str) -> Any:
        """Round to `dtype`; the result may be held in a wider type."""

    def product(self, left: Any, right: Any, dtype: str) -> Any:
        """Multiply matrices (the last two axes) of `dtype`."""

    def scatter_add(self, size: int, places: Any, values: Any) -> Any:
        """Add each value at its place into zeros."""

    def scatter_set(self, size: int, places: Any, values: Any) -> Any:
        """Put each value at its place into zeros. No place is named twice."""

    def count(self, places: Any, bins: int) -> Any:
        """Return how often each bin is named, int32."""

    def reverse_root(self, array: Any) -> Any:
        """Return 1/√x."""

    def sum_devices(self, array: Any, alone: int = -1) -> Any:
        """Return the sum over all devices; without the one at the place `alone`, which keeps its own."""

    def gather_devices(self, array: Any) -> Any:
        """Return the arrays of all devices, one after the other."""

    def spread_sum(self, array: Any) -> Any:
        """Return each device's part of the sum over all devices."""

    def pass_on(self, array: Any, distance: int) -> Any:
        """Return the array of the device so many places before."""

    def swap_rows(self, rows: Any) -> Any:
        """Return a row from each device, one after the other. `rows`: one for each device."""

    def device_number(self) -> Any:
        """Return the place of this device among all."""


class Lane:
    """One device's view of a unit: its key, the planted fault's words, and the arithmetic."""

    def __init__(self, arithmetic: Arithmetic, key: Any, fault: Any) -> None:
        self.arithmetic = arithmetic
        self.xp = arithmetic.xp
        self.key = key
        self.fault = fault

    def words(self, size: int, stream: int = 0) -> Any:
        """Return hashed words, uint32."""
        return hash_counters(self.xp, self.key, size, stream)

    def numbers(self, shape: tuple[int, ...], stream: int = 0) -> Any:
        """Return float32 numbers in [-1, 1), each a multiple of 2^-23."""
        xp = self.xp
        size = 1
        for length in shape:
            size *= length
        whole = (self.words(size, stream) >> 8).astype(xp.float32)
        return (whole * xp.float32(2.0**-23) - xp.float32(1)).reshape(shape)

    def powers(self, shape: tuple[int, ...], low: int, high: int, stream: int = 0) -> Any:
        """Return float32 powers of two with exponents from `low` to `high`."""
        xp = self.xp
        size = 1
        for length in shape:
            size *= length
        exponents = self.words(size, stream) % xp.uint32(high - low + 1) + xp.uint32(127 + low)
        return (exponents << 23).view(xp.float32).reshape(shape)

    def payload(self, size: int) -> Any:
        """Return float32 numbers of any bits, each fourth one at a limit of the type. Only copies keep them all."""
        words, limits = self.words(size), self.xp.array(LIMIT_WORDS, dtype=self.xp.uint32)
        places = self.xp.arange(size, dtype=self.xp.uint32)
        chosen = limits[((places >> 2) % self.xp.uint32(len(LIMIT_WORDS))).astype(self.xp.int32)]
        return self.xp.where(places % 4 == 0, chosen, words).view(self.xp.float32)

    def spoil(self, array: Any) -> Any:
        """Return `array` with the planted fault of a result in it."""
        return apply_fault(self.xp, array, self.fault, "result")

    def send(self, array: Any) -> Any:
        """Return what leaves this device for others: `array`, with the planted fault of the sending side in it."""
        return apply_fault(self.xp, array, self.fault, "send")
