"""Thirty days of random failures on 200 nodes, played with the policy of the starter: what the pool delivers."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest

from assay.decide.replay.history import HISTORY_EPOCH
from assay.model.decision import REPLACEMENT_RULE
from assay.model.node import Node
from assay.model.specs.node_settings import NodeSettings, PoolCapacity, ServiceImport
from tests.decide.replay.replay_world import HOUR, clear, fault

NODES, DAYS, DAY = 200, 30, 24 * HOUR
FAULTS = ("gpu.xid.79", "gpu.missing", "ib.link.down", "gpu.thermal", "host.mce")


def make_pool(delivered: int) -> dict[str, Node]:
    """Return the nodes, of which so many serve; the others are spares."""
    names = [f"n{number:03}" for number in range(1, NODES + 1)]
    known = ServiceImport(nodes=names[:delivered], reason="they serve", expires="2999-01-01")
    capacity = PoolCapacity(delivered=delivered, spares=NODES - delivered)
    common = NodeSettings(service_import=known, capacity=capacity, lifecycle_start="spare")
    return {
        name: Node(name, "a", "lab1", f"r{number // 4}", 1, f"s-{name}", "hgx", "managed", settings=common)
        for number, name in enumerate(names)
    }


def make_failures(seed: int, per_year: float = 5) -> list[dict]:
    """Return failures at random: half of them are over after a restart, the others when somebody has worked on them."""
    chance, events = random.Random(seed), []
    for name in make_pool(1):
        time = chance.expovariate(per_year / 365) * DAY
        while time < DAYS * DAY:
            kind, lasts = chance.choice(FAULTS), chance.choice((600, 2 * HOUR, 30 * HOUR))
            events += [fault(time, name, kind), clear(time + lasts, name, kind)]
            time += lasts + chance.expovariate(per_year / 365) * DAY
    return sorted(events, key=lambda event: event["time"])


def measure(result, delivered: int) -> tuple[float, list[int]]:
    """Return the share of the declared node-hours that were delivered, and how many nodes served after each move."""
    serving, hours, counts = delivered, 0.0, []
    last, end = HISTORY_EPOCH, HISTORY_EPOCH + timedelta(days=DAYS)
    in_service = result.policy.states_in_service
    for made in result.decisions:
        decision = made.decision
        if decision.timing != "immediate" or made.at > end:
            continue
        hours += min(serving, delivered) * (made.at - last).total_seconds() / HOUR
        last = made.at
        serving += (decision.to_state in in_service) - (decision.from_state in in_service)
        counts.append(serving)
    hours += min(serving, delivered) * (end - last).total_seconds() / HOUR
    return hours / (delivered * DAYS * 24), counts


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_pool_delivers_99_percent_of_what_it_declares_while_spares_last(played, seed):
    delivered = 185
    events = make_failures(seed)
    assert len(events) > 120
    result = played(events, make_pool(delivered))
    share, counts = measure(result, delivered)
    swaps = [made for made in result.decisions if made.decision.rule.endswith(REPLACEMENT_RULE)]
    assert len(swaps) > 20, "the failures take nodes out for long"
    assert max(counts) <= delivered, "nobody pays for more than is declared"
    assert share >= 0.99


@pytest.mark.slow
def test_without_spares_the_same_month_delivers_less(played):
    events = make_failures(0)
    with_spares, without = (measure(played(events, make_pool(size)), size)[0] for size in (185, NODES))
    assert without < 0.99 <= with_spares
