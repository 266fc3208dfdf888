"""The arithmetic of lanes in JAX, inside a program that runs on all devices at once, along the axis `AXIS`."""

from __future__ import annotations

from typing import Any

AXIS = "device"


class JaxArithmetic:
    """What a device computes with. `has_tfloat32`: whether products of that type are told apart from float32's."""

    def __init__(self, devices: int, *, has_tfloat32: bool) -> None:
        import jax.numpy
        from jax import lax

        self.xp: Any = jax.numpy
        self._lax: Any = lax
        self._devices = devices
        self._types: dict[str, Any] = {"float8": jax.numpy.float8_e4m3fn, "tfloat32": jax.numpy.float32}
        highest = lax.Precision.HIGHEST
        self._tfloat32 = lax.DotAlgorithmPreset.TF32_TF32_F32 if has_tfloat32 else highest
        self._highest = highest

    def narrow(self, array: Any, dtype: str) -> Any:
        """Round to a type; the result has this type, except for tfloat32."""
        return array.astype(self._types.get(dtype, dtype))

    def product(self, left: Any, right: Any, dtype: str) -> Any:
        """Multiply matrices, with sums in float64, int32 or float32."""
        xp = self.xp
        sums = {"float64": xp.float64, "int8": xp.int32}.get(dtype, xp.float32)
        precision = self._tfloat32 if dtype == "tfloat32" else self._highest
        return xp.matmul(left, right, precision=precision, preferred_element_type=sums)

    def scatter_add(self, size: int, places: Any, values: Any) -> Any:
        """Add each value at its place."""
        return self.xp.zeros(size, values.dtype).at[places].add(values)

    def scatter_set(self, size: int, places: Any, values: Any) -> Any:
        """Put each value at its place."""
        return self.xp.zeros(size, values.dtype).at[places].set(values)

    def count(self, places: Any, bins: int) -> Any:
        """Return how often each bin is named."""
        return self.xp.bincount(places, length=bins).astype(self.xp.int32)

    def reverse_root(self, array: Any) -> Any:
        """Return 1/√x."""
        return self._lax.rsqrt(array)

    def sum_devices(self, array: Any) -> Any:
        """Return the sum over all devices."""
        return self._lax.psum(array, AXIS)

    def gather_devices(self, array: Any) -> Any:
        """Return the arrays of all devices, one after the other."""
        return self._lax.all_gather(array, AXIS, tiled=True)

    def spread_sum(self, array: Any) -> Any:
        """Return each device's part of the sum over all devices."""
        return self._lax.psum_scatter(array, AXIS, tiled=True)

    def pass_on(self, array: Any, distance: int) -> Any:
        """Return the array of the device so many places before."""
        ring = [(place, (place + distance) % self._devices) for place in range(self._devices)]
        return self._lax.ppermute(array, AXIS, ring)

    def device_number(self) -> Any:
        """Return the place of this device among all."""
        return self._lax.axis_index(AXIS)
