"""Planted fleets by another idea of failure: heavy tails beside light ones, creep, bursts, wear at random.

`mixed`: a temperature with own seasons and load, a counter of errors with harmless spells, a slowness with wild
values. Failures creep, accelerate, burst, step or give no sign. `wear`: damage grows in jumps at random, and several
measurements follow it; a part fails once it is worn. Each node is one part.
"""

from __future__ import annotations

import numpy as np

from bench.trend_worlds import Drift, Floats, World

MIXED = ("mixed", "wear")
MIXED_NAMES = ("temperature", "errors", "slowness")
COUNTER = 1
SHAPES = ("linear", "accelerating", "creep", "rising", "burst", "fading", "step", "none")


def make_mixed(kind: str, seed: int, parts: int = 600, days: int = 365) -> World:
    """Return a world; the same kind and seed give the same one."""
    chance = np.random.default_rng([77, MIXED.index(kind), seed])
    values = np.stack(
        [_heat(parts, days, chance), _errors(parts, days, chance), _slowness(parts, days, chance)], axis=1
    )
    world = World(kind, seed, values, names=MIXED_NAMES, counters=(COUNTER,))
    world.updated = np.zeros(parts, dtype=np.int64)
    plant = _plant_shape if kind == "mixed" else _plant_wear
    for number, part in enumerate(chance.choice(parts, parts // 15, replace=False)):
        plant(world, int(part), SHAPES[number % len(SHAPES)], chance)
    counts = np.cumsum(values[:, COUNTER], axis=1)
    for part in range(parts):
        for day in chance.integers(1, days, 3):
            counts[part, day:] = np.maximum(0, counts[part, day:] - counts[part, day - 1])
    values[:, COUNTER] = counts
    values[chance.random((parts, len(MIXED_NAMES), days)) < 0.08] = np.nan
    return world


def _heat(parts: int, days: int, chance: np.random.Generator) -> Floats:
    day = np.arange(days)
    season = chance.uniform(0.5, 2, parts)[:, None] * 4 * np.sin(2 * np.pi * (day - 40) / 365)[None, :]
    values: Floats = chance.normal(60, 4, parts)[:, None] + season + chance.normal(0, 1.2, (parts, days))
    for part in range(parts):
        at = int(chance.integers(0, 40))
        while at < days:
            length = int(chance.integers(4, 20))
            values[part, at : at + length] += chance.uniform(2, 8)
            at += length + int(chance.integers(5, 40))
    return values + np.where(chance.random((parts, days)) < 0.004, chance.normal(0, 25, (parts, days)), 0)


def _errors(parts: int, days: int, chance: np.random.Generator) -> Floats:
    """Return how many errors come on each day: a tenth of the parts has many, and some have harmless spells."""
    rate = np.where(chance.random(parts) < 0.1, chance.gamma(0.6, 1.5, parts), chance.gamma(0.3, 0.05, parts))
    errors = chance.poisson(rate[:, None] * np.ones(days)).astype(float)
    for part in np.flatnonzero(chance.random(parts) < 0.08):
        since, length = int(chance.integers(0, days - 25)), int(chance.integers(5, 20))
        errors[part, since : since + length] += chance.poisson(chance.gamma(1, 4), length)
    return errors


def _slowness(parts: int, days: int, chance: np.random.Generator) -> Floats:
    wild = np.where(chance.random((parts, days)) < 0.01, chance.uniform(20, 80, (parts, days)), 0)
    slow: Floats = chance.normal(0, 3, parts)[:, None] + chance.normal(0, 2.5, (parts, days)) + wild
    return slow


def _plant_shape(world: World, part: int, shape: str, chance: np.random.Generator) -> None:
    fails, length = int(chance.integers(130, world.days - 2)), int(chance.integers(20, 60))
    if shape == "creep":
        length = int(chance.integers(150, 230))
        fails = int(chance.integers(length + 20, world.days - 2))
    if shape in ("burst", "step"):
        length = int(chance.integers(5, 20))
    onset = fails - length
    share = np.arange(length) / length
    heat, errors, slow = world.values[part, :, onset:fails]
    if shape == "none":
        world.abrupt.append((part, fails))
        return
    if shape in ("linear", "creep"):
        heat += chance.uniform(12, 24) * share
    elif shape == "accelerating":
        heat += chance.uniform(12, 30) * share**2.5
    elif shape == "rising":
        errors += chance.poisson(np.exp(share * chance.uniform(3, 5)) - 1)
    elif shape == "burst":
        errors += chance.poisson(chance.uniform(10, 60), length)
    else:
        slow += chance.uniform(15, 50) * (share if shape == "fading" else 1)
    measurement = {"rising": 1, "burst": 1, "fading": 2, "step": 2}.get(shape, 0)
    world.drifts.append(Drift(part, measurement, shape, onset, fails))
    _repair(world, part, fails, chance)


def _plant_wear(world: World, part: int, shape: str, chance: np.random.Generator) -> None:
    """Let damage grow by a gamma process from a day on; heat and slowness follow at once, errors once half is gone."""
    onset = int(chance.integers(100, world.days - 40))
    damage = np.cumsum(chance.gamma(0.15, chance.uniform(0.1, 0.3), world.days - onset))
    worn = np.flatnonzero(damage > 1)
    fails = onset + int(worn[0]) if len(worn) else None
    end = world.days if fails is None else fails
    damage = damage[: end - onset]
    leads = int(chance.integers(3))
    for measurement, most in ((0, 20.0), (2, 30.0)):
        world.values[part, measurement, onset:end] += damage * most * (1.0 if measurement == leads else 0.3)
    world.values[part, COUNTER, onset:end] += chance.poisson(np.maximum(damage - 0.5, 0) * (40 if leads == 1 else 4))
    world.drifts.append(Drift(part, leads, shape, onset, fails))
    if fails is not None:
        _repair(world, part, fails, chance)


def _repair(world: World, part: int, on: int, chance: np.random.Generator) -> None:
    """Put another part in its place."""
    left = world.days - on
    for measurement, middle, noise in ((0, chance.normal(60, 4), 1.2), (2, chance.normal(0, 3), 2.5)):
        world.values[part, measurement, on:] = chance.normal(middle, noise, left)
    world.values[part, COUNTER, on:] = chance.poisson(0.01, left)
    world.repairs.append((part, on))
