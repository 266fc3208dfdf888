"""The measurements as a table for people."""

from __future__ import annotations

from collections.abc import Sequence

from bench.measurement import Measurement


def told(taken: Sequence[Measurement]) -> str:
    """Return a line for each measurement, and one that sums them up."""
    width = max((len(one.what) for one in taken), default=0)
    lines = [f"  {one.what:<{width}}  {_figure(one):>9}   {one.side} {_bound(one)}{_verdict(one)}" for one in taken]
    missed = sum(not one.holds for one in taken)
    summary = f"{missed} of {len(taken)} bounds do not hold" if missed else f"all {len(taken)} bounds hold"
    return "\n".join(["", *lines, "", summary])


def _figure(one: Measurement) -> str:
    return f"{one.figure:.3g} {one.unit}" if one.figure < 1000 else f"{one.figure:.0f} {one.unit}"


def _bound(one: Measurement) -> str:
    return f"{one.bound:g} {one.unit}"


def _verdict(one: Measurement) -> str:
    return "" if one.holds else "  ← does not hold"
