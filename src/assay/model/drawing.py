"""Numbers as SVG geometry."""

from __future__ import annotations

from collections.abc import Iterable


def draw_polyline(
    points: Iterable[tuple[float, float]], size: tuple[float, float], x: tuple[float, float], y: tuple[float, float]
) -> str:
    """Return the `points` attribute of a SVG polyline in a field of `size` (width, height).

    `x` and `y` are the ranges of the axes, first and last value. The last value of `y` is at the top. An axis whose
    two values are equal draws everything at its first value.
    """
    across, up = size[0] / ((x[1] - x[0]) or 1), size[1] / ((y[1] - y[0]) or 1)
    return " ".join(f"{(at - x[0]) * across:.1f},{size[1] - (value - y[0]) * up:.1f}" for at, value in points)
