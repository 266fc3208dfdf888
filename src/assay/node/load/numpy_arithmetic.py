"""The arithmetic of lanes in numpy. Narrow types that numpy lacks are held in float32, rounded to nearest even."""

from __future__ import annotations

from typing import Any, NoReturn

FLOAT32_ROUNDED_BITS = {"bfloat16": 16, "tfloat32": 13}


class NumpyArithmetic:
    """One CPU's arithmetic. There is one device at a time, so there is nothing to exchange."""

    def __init__(self) -> None:
        import numpy

        self.xp: Any = numpy

    def narrow(self, array: Any, dtype: str) -> Any:
        """Round to a type. int8 and the 16-bit types are held in float32 or int32: products of them are exact there."""
        if dtype == "int8":
            return array.astype(self.xp.int32)
        if dtype == "float16":
            return array.astype(self.xp.float16).astype(self.xp.float32)
        if dtype in FLOAT32_ROUNDED_BITS:
            return self._round_bits(array, FLOAT32_ROUNDED_BITS[dtype])
        return array.astype(dtype)

    def _round_bits(self, array: Any, dropped: int) -> Any:
        xp = self.xp
        bits = xp.ascontiguousarray(array).view(xp.uint32)
        half = xp.uint32((1 << (dropped - 1)) - 1) + ((bits >> xp.uint32(dropped)) & xp.uint32(1))
        return ((bits + half) & xp.uint32(~((1 << dropped) - 1) & 0xFFFFFFFF)).view(xp.float32)

    def product(self, left: Any, right: Any, dtype: str) -> Any:
        """Multiply matrices."""
        del dtype
        return left @ right

    def scatter_add(self, size: int, places: Any, values: Any) -> Any:
        """Add each value at its place."""
        sums = self.xp.zeros(size, values.dtype)
        self.xp.add.at(sums, places, values)
        return sums

    def scatter_set(self, size: int, places: Any, values: Any) -> Any:
        """Put each value at its place."""
        put = self.xp.zeros(size, values.dtype)
        put[places] = values
        return put

    def count(self, places: Any, bins: int) -> Any:
        """Return how often each bin is named."""
        return self.xp.bincount(places, minlength=bins).astype(self.xp.int32)

    def reverse_root(self, array: Any) -> Any:
        """Return 1/√x."""
        return array.dtype.type(1) / self.xp.sqrt(array)

    def sum_devices(self, array: Any) -> NoReturn:
        """Not here."""
        raise NotImplementedError

    gather_devices = spread_sum = sum_devices

    def pass_on(self, array: Any, distance: int) -> NoReturn:
        """Not here."""
        raise NotImplementedError

    def device_number(self) -> NoReturn:
        """Not here."""
        raise NotImplementedError
