"""The parts of the benchmark, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from bench import (
    agent,
    big,
    big_bmcs,
    bmcs,
    burn_in,
    collectives,
    congestion,
    cordon,
    corruption,
    fabric,
    faults,
    harness,
    history,
    idle_cost,
    kubernetes,
    ledger,
    load,
    metrics,
    million,
    observing,
    playbooks,
    quiet,
    replay,
    report,
    results,
    rollout,
    slow_harm,
    starting,
    sync,
    trend_cost,
    trends,
    viewers,
    week,
)
from bench.measurement import Measurement

PARTS: dict[str, Callable[[Path], Iterator[Measurement]]] = {
    "trends": trends.measurements,
    "collectives": collectives.measurements,
    "congestion": congestion.measurements,
    "burn-in": burn_in.measurements,
    "corruption": corruption.measurements,
    "slow_harm": slow_harm.measurements,
    "starting": starting.measurements,
    "bmcs": bmcs.measurements,
    "big_bmcs": big_bmcs.measurements,
    "big": big.measurements,
    "fabric": fabric.measurements,
    "harness": harness.measurements,
    "million": million.measurements,
    "replay": replay.measurements,
    "report": report.measurements,
    "results": results.measurements,
    "load": load.measurements,
    "sync": sync.measurements,
    "trend-cost": trend_cost.measurements,
    "history": history.measurements,
    "faults": faults.measurements,
    "week": week.measurements,
    "ledger": ledger.measurements,
    "agent": agent.measurements,
    "observing": observing.measurements,
    "playbooks": playbooks.measurements,
    "quiet": quiet.measurements,
    "metrics": metrics.measurements,
    "viewers": viewers.measurements,
    "cordon": cordon.measurements,
    "rollout": rollout.measurements,
    "kubernetes": kubernetes.measurements,
    "idle_cost": idle_cost.measurements,
}
COUNTED = ("trends", "collectives", "burn-in", "corruption", "slow_harm")
COUNTED = ("trends", "collectives", "congestion", "burn-in", "corruption")
"""Parts that count what is found in simulations. They run first, one on each CPU; the others run alone."""
