"""Formats measurements as a table for people."""

from __future__ import annotations

from collections.abc import Sequence

from bench.measurement import Measurement


def format_table(taken: Sequence[Measurement]) -> str:
    """Return a line for each measurement, and a summary."""
    width = max((len(measurement.what) for measurement in taken), default=0)
    missed = sum(not measurement.holds for measurement in taken)
    lost = sum(measurement.is_lost for measurement in taken)
    summary = f"{missed} of {len(taken)} bounds do not hold" if missed else f"all {len(taken)} bounds hold"
    summary += f"; {lost} are worse than the kept figures" if lost else ""
    return "\n".join(["", *(_format_row(measurement, width) for measurement in taken), "", summary])


def _format_row(measurement: Measurement, width: int) -> str:
    figure, unit = measurement.judged, measurement.unit
    shown = f"{figure:.3g} {unit}" if figure < 1000 else f"{figure:.0f} {unit}"
    raw = f"  ({measurement.figure:.3g} here)" if figure != measurement.figure else ""
    mark = "" if measurement.holds else "  ← does not hold"
    was = f"  (was {measurement.former:.3g}{': lost' * measurement.is_lost})" if measurement.former is not None else ""
    around = f"  ±{measurement.spread:.0%}, load {measurement.load:.1f}" if measurement.load else ""
    bound = f"{measurement.side} {measurement.bound:g} {unit}"
    return f"  {measurement.what:<{width}}  {shown:>9}   {bound}{raw}{around}{was}{mark}"
