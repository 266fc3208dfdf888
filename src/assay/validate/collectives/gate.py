"""The gate: each node runs a collective alone first, over its NVLink. Who fails is faulty itself, and takes no partner.

A node is named if two runs were bad. So a node that was bad in G1 runs again in G2, and if that was good, in G3. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from assay.validate.collectives.group_judging import GroupObservation
from assay.validate.collectives.group_results import GroupRound

GATE_ROUNDS = ("G1", "G2", "G3")
MIN_BAD = 2


@dataclass(frozen=True, slots=True)
class GateFindings:
    """What the gate says of each node: `faulty` and `once` (bad, but not twice) with all runs of the node.

    `note` says why nobody is named, "" if that needs no word. `good` counts the nodes that were good.
    """

    faulty: Mapping[str, tuple[GroupObservation, ...]]
    once: Mapping[str, tuple[GroupObservation, ...]]
    good: int = 0
    note: str = ""


def plan_gate(nodes: Sequence[str], observations: Sequence[GroupObservation], name: str) -> GroupRound:
    """Return a round of the gate: all nodes, then those of which it is not known yet. It may have no group."""
    if name == GATE_ROUNDS[0]:
        return GroupRound(name, tuple((node,) for node in nodes))
    runs = _group_by_node(observations)
    return GroupRound(name, tuple((node,) for node in nodes if _is_open(runs.get(node, ()))))


def judge_gate(observations: Sequence[GroupObservation]) -> GateFindings:
    """Return who is faulty alone. If no node was good, nobody is: the command may be the cause."""
    runs = {node: tuple(own) for node, own in _group_by_node(observations).items()}
    bad = {node: own for node, own in runs.items() if any(one.is_bad for one in own)}
    good = sum(node not in bad and any(one.verdict == "good" for one in own) for node, own in runs.items())
    if bad and not any(one.verdict == "good" for one in observations):
        note = "no node was good alone: the command or its environment may be the cause, so nobody is named"
        return GateFindings({}, bad, 0, note)
    faulty = {node: own for node, own in bad.items() if sum(one.is_bad for one in own) >= MIN_BAD}
    return GateFindings(faulty, {node: own for node, own in bad.items() if node not in faulty}, good)


def _is_open(own: Sequence[GroupObservation]) -> bool:
    """Whether another run can decide: bad once so far."""
    return sum(one.is_bad for one in own) == 1


def _group_by_node(observations: Sequence[GroupObservation]) -> Mapping[str, list[GroupObservation]]:
    found: defaultdict[str, list[GroupObservation]] = defaultdict(list)
    for one in observations:
        found[one.nodes[0]].append(one)
    return found
